"""A small study with seeds: RoPE against no positions.

Here with two layers of width 32, 300 steps and three seeds. For models that are to be good, or larger than a laptop
trains, take the Trainer of transformers (several GPUs, bfloat16, accumulation) or a loop of your own around
x-transformers, which has most of what was ever tried as a switch. posembed's runs are small on purpose: it adds that a
run is a file with its config, that a grid goes on where it was stopped, and that the same seed has the same batches in
all arms. The numbers differ: the models have their depth, width and heads in common, and not, among other things,
RoPE's base, how many weights they have, how these begin, what is normalised, whether gradients are clipped, how the
rate falls or what decays. Which of these it is was not asked.
"""

from posembed.data import load_corpus

ABSENT = {
    "rotary_embedding_torch": "rotations alone",
    "transformer_lens": "`tools.training` trains one model to be looked into; it has no study",
    "nnsight": "nothing for this: it looks into models that are trained",
    "plain": "the loop of x-transformers' cell, and a model of your own",
}


def given(quick):
    """Steps, seeds, width, pieces of the package's text to train on and to test on, and how many characters it has."""
    corpus = load_corpus()
    train, test = (
        part[: len(part) // 64 * 64].view(-1, 64)
        for part in (corpus.train, corpus.test)
    )
    sizes = (
        (3, (1, 2), 16, train[:64], test[:64])
        if quick
        else (300, (1, 2, 3), 32, train, test[:2048])
    )
    return *sizes, corpus.vocab_size


def posembed(steps, seeds, width, train, test, n_words):
    """The difference with its interval; each run kept as a file, and taken up again where it was stopped."""
    import tempfile

    from posembed import RunConfig, run_grid
    from posembed.stats import difference

    options = {
        "steps": steps,
        "warmup": 0,
        "n_layers": 2,
        "d_model": width,
        "n_heads": 2,
        "learning_rate": 3e-3,
    }
    configs = [
        RunConfig(scheme=name, seed=seed, **options)
        for name in ("rope", "nopos")
        for seed in seeds
    ]
    results = run_grid(configs, engine="serial", out=tempfile.mkdtemp())
    losses = [result.metrics["loss"] for result in results]
    found = difference(losses[: len(seeds)], losses[len(seeds) :])
    return found.mean, found.low, found.high


def transformers(steps, seeds, width, train, test, n_words):
    """The same, by a Trainer that goes up to many GPUs; few models can be had with and without their positions."""
    import tempfile

    import numpy as np
    from scipy.stats import ttest_rel
    from transformers import (
        SmolLM3Config,
        SmolLM3ForCausalLM,
        Trainer,
        TrainingArguments,
        set_seed,
    )

    sizes = {
        "hidden_size": width,
        "intermediate_size": 4 * width,
        "num_hidden_layers": 2,
    }
    sizes |= {
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "vocab_size": n_words,
        "pad_token_id": None,
    }
    train, test = (
        [{"input_ids": x, "labels": x} for x in part] for part in (train, test)
    )
    options = {
        "learning_rate": 3e-3,
        "max_steps": steps,
        "per_device_train_batch_size": 32,
        "use_cpu": True,
    }
    options |= {
        "report_to": "none",
        "disable_tqdm": True,
        "save_strategy": "no",
        "logging_strategy": "no",
    }
    losses = {0: [], 1: []}
    for seed in seeds:
        for rope, found in losses.items():
            set_seed(seed)
            model = SmolLM3ForCausalLM(
                SmolLM3Config(no_rope_layers=[rope, rope], **sizes)
            )
            arguments = TrainingArguments(
                tempfile.mkdtemp(), seed=seed, **options
            )
            trainer = Trainer(
                model, arguments, train_dataset=train, eval_dataset=test
            )
            trainer.train()
            found.append(trainer.evaluate()["eval_loss"])
    interval = ttest_rel(losses[1], losses[0]).confidence_interval()
    return np.subtract(losses[1], losses[0]).mean(), interval.low, interval.high


def x_transformers(steps, seeds, width, train, test, n_words):
    """The same, by a loop of one's own; rotations are a switch, and most other ideas too."""
    import numpy as np
    import torch
    from scipy.stats import ttest_rel
    from x_transformers import (
        AutoregressiveWrapper,
        Decoder,
        TransformerWrapper,
    )

    losses = {False: [], True: []}
    for seed in seeds:
        for rope, found in losses.items():
            torch.manual_seed(seed)
            layers = Decoder(
                dim=width,
                depth=2,
                heads=2,
                attn_dim_head=width // 2,
                rotary_pos_emb=rope,
                rotary_emb_dim=width // 2,
            )
            sizes = {
                "num_tokens": n_words,
                "max_seq_len": 64,
                "use_abs_pos_emb": False,
            }
            model = AutoregressiveWrapper(
                TransformerWrapper(attn_layers=layers, **sizes)
            )
            optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
            schedule = torch.optim.lr_scheduler.CosineAnnealingLR(
                optimizer, steps
            )
            for _ in range(steps):
                optimizer.zero_grad()
                model(train[torch.randint(len(train), (32,))]).backward()
                optimizer.step()
                schedule.step()
            with torch.no_grad():
                found.append(
                    np.mean(
                        [model.eval()(batch).item() for batch in test.split(32)]
                    )
                )
    interval = ttest_rel(losses[True], losses[False]).confidence_interval()
    return (
        np.subtract(losses[True], losses[False]).mean(),
        interval.low,
        interval.high,
    )


def shown(answer, _):
    """Nats a character."""
    return "RoPE changes the loss by {:.3f} ({:.3f} to {:.3f}) nats".format(
        *answer
    )


def agree(answers, inputs):
    """Models and batches differ, and so does what RoPE is worth; but in each it lowers the loss."""
    if inputs[0] > 3:
        assert all(mean < 0 for mean, *_ in answers.values()), answers
