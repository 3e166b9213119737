"""Train a GPT-2 with any position scheme in place of its own, with the Trainer of Hugging Face, and store what it gave.

    python lab/train_gpt2.py --preset gpu --scheme alibi --seed 1
    accelerate launch lab/train_gpt2.py --preset paper-125M --scheme nopos     (several GPUs)

Checkpoints, logs, several GPUs and bfloat16 are the Trainer's. A run that was stopped goes on from its last checkpoint;
one that has a result is not run again.
"""

import argparse
import hashlib
import json
import time
from importlib.metadata import version
from itertools import chain
from pathlib import Path

import torch
from datasets import Dataset, DatasetDict, load_dataset
from presets import PRESETS
from tokenizers import ByteLevelBPETokenizer
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, default_data_collator, set_seed
from transformers.trainer_utils import get_last_checkpoint

from posembed.data import perplexities
from posembed.models import use_scheme
from posembed.training.results import write_whole

# Rows of a text without a validation split that are kept for one: a twentieth.
VALIDATION = 0.05


def load_text(name: str) -> DatasetDict:
    """Load a text file, or a dataset of the hub as NAME or NAME:VARIANT, in a training and a validation part."""
    if Path(name).is_file():
        found = load_dataset("text", data_files=name, keep_linebreaks=True)
    else:
        found = load_dataset(*name.split(":"))
    if "validation" not in found:
        split = found["train"].train_test_split(VALIDATION, shuffle=False)
        found = DatasetDict(train=split["train"], validation=split["test"])
    return DatasetDict({part: found[part].select_columns("text") for part in ("train", "validation")})


def pieces(text: Dataset, tokenizer: ByteLevelBPETokenizer, length: int) -> Dataset:
    """Cut a text into pieces of so many tokens."""

    def cut(batch: dict) -> dict:
        ids = list(chain.from_iterable(each.ids for each in tokenizer.encode_batch(batch["text"])))
        rows = [ids[start : start + length] for start in range(0, len(ids) - length + 1, length)]
        return {"input_ids": rows, "labels": rows}

    return text.map(cut, batched=True, batch_size=10_000, remove_columns="text")


def make_model(settings: dict, vocab_size: int) -> GPT2LMHeadModel:
    """Make an untrained GPT-2 whose positions are those of a scheme."""
    dropout = dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), settings["dropout"])
    config = GPT2Config(
        vocab_size=vocab_size, n_positions=settings["length"], n_embd=settings["d_model"], n_layer=settings["n_layers"],
        n_head=settings["n_heads"], bos_token_id=None, eos_token_id=None, use_cache=False, **dropout,
    )  # fmt: skip
    model = GPT2LMHeadModel(config)
    use_scheme(model, settings["scheme"])
    return model


def arguments(settings: dict, folder: Path) -> TrainingArguments:
    """Say to the Trainer what the settings mean."""
    devices = max(1, torch.cuda.device_count())
    return TrainingArguments(
        output_dir=str(folder),
        max_steps=settings["steps"],
        per_device_train_batch_size=settings["batch_size"] // (devices * settings["accumulate"]),
        gradient_accumulation_steps=settings["accumulate"],
        learning_rate=settings["learning_rate"],
        lr_scheduler_type="cosine_with_min_lr",
        lr_scheduler_kwargs={"min_lr_rate": settings["lowest_rate"]},
        warmup_steps=settings["warmup"],
        weight_decay=settings["weight_decay"],
        adam_beta1=settings["betas"][0],
        adam_beta2=settings["betas"][1],
        max_grad_norm=settings["largest_gradient"],
        bf16=torch.cuda.is_available(),
        seed=settings["seed"],
        logging_steps=max(1, settings["steps"] // 40),
        save_steps=max(1, settings["steps"] // 20),
        save_total_limit=1,
        report_to=[],
    )


def train(settings: dict, folder: Path) -> dict:
    """Train and measure; return what a result holds."""
    start = time.perf_counter()
    set_seed(settings["seed"])
    todo = arguments(settings, folder)
    with todo.main_process_first():
        text = load_text(settings["text"])
        tokenizer = ByteLevelBPETokenizer()
        tokenizer.train_from_iterator(text["train"]["text"], vocab_size=settings["vocab_size"], show_progress=False)
        cut = {part: pieces(text[part], tokenizer, settings["length"]) for part in text}
    model = make_model(settings, tokenizer.get_vocab_size())
    nag = None
    if settings["optimizer"] == "nag":
        rate, momentum = settings["learning_rate"], settings["betas"][0]
        nag = torch.optim.SGD(model.parameters(), lr=rate, momentum=momentum, nesterov=True)
    trainer = Trainer(
        model, todo, train_dataset=cut["train"], eval_dataset=cut["validation"],
        data_collator=default_data_collator, optimizers=(nag, None),
    )  # fmt: skip
    trainer.train(resume_from_checkpoint=get_last_checkpoint(folder) if folder.is_dir() else None)
    loss = trainer.evaluate()["eval_loss"]
    n_tokens = len(cut["validation"]) * settings["length"]
    n_words = sum(len(row.split()) for row in text["validation"]["text"])
    found = perplexities(loss, n_tokens=n_tokens, n_words=n_words)
    return {
        "format": 1,
        "config": settings,
        "metrics": {
            "validation_loss": round(loss, 6),
            "perplexity_per_token": round(found.per_token, 4),
            "perplexity_per_word": round(found.per_word, 2),
            "curve": [round(each["loss"], 4) for each in trainer.state.log_history if "loss" in each],
            "parameters": sum(each.numel() for each in model.parameters() if each.requires_grad),
            "tokens": settings["steps"] * settings["batch_size"] * settings["length"],
        },
        "versions": {name: version(name) for name in ("posembed", "torch", "transformers", "tokenizers", "datasets")},
        "machine": torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU",
        "wall_seconds": round(time.perf_counter() - start, 1),
    }


def main() -> None:
    """Run what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--preset", default="gpu", choices=PRESETS)
    parser.add_argument("--scheme", default="nopos", help="a name that posembed.scheme knows")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE", help="other settings of the preset")
    parser.add_argument("--out", type=Path, default=Path("results/lab"), help="the folder of the results")
    given = parser.parse_args()
    settings = PRESETS[given.preset] | {"scheme": given.scheme, "seed": given.seed, "preset": given.preset}
    for name, _, value in (each.partition("=") for each in given.set):
        if name not in settings:
            parser.error(f"there is no setting {name!r}; choose among {', '.join(settings)}")
        settings[name] = value if isinstance(settings[name], str) else json.loads(value)
    key = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:16]
    path = given.out / f"{key}.json"
    if not path.exists():
        result = train(settings, given.out / key)
        # Of several processes the first one writes.
        if TrainingArguments(output_dir=str(given.out)).process_index == 0:
            write_whole(path, (json.dumps(result, indent=1) + "\n").encode())
    print(path)


if __name__ == "__main__":
    main()
