"""Audit every model type of the installed transformers that can be made tiny, with random weights, on a CPU.

    python tools/census.py            # all types that have no result yet, one process after the other
    python tools/census.py llama t5   # these, anew
    python tools/census.py --table    # what is there: a count of verdicts, and what is broken

A result is one JSON a type in results/census/; a run that is stopped goes on where it was.
"""

import argparse
import contextlib
import io
import json
import multiprocessing
import warnings
from collections import Counter
from datetime import date
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "results" / "census"
FORK = multiprocessing.get_context("fork")
# Seconds that one type may take.
LIMIT = 400
LENGTH = 64
# Settings by the names that configs have for them; nested configs get the same.
SIZES = {
    **dict.fromkeys(("vocab_size", "src_vocab_size", "tgt_vocab_size", "text_vocab_size"), 99),
    **dict.fromkeys(("hidden_size", "d_model", "n_embd", "dim", "embed_dim", "hidden_dim", "emb_dim"), 32),
    **dict.fromkeys(("word_embed_proj_dim", "embedding_size", "n_embed", "d_embed"), 32),
    **dict.fromkeys(("num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers"), 2),
    **dict.fromkeys(("decoder_layers", "num_decoder_layers", "num_encoder_layers", "encoder_num_layers"), 2),
    **dict.fromkeys(("num_attention_heads", "n_head", "n_heads", "num_heads", "encoder_attention_heads"), 4),
    **dict.fromkeys(("decoder_attention_heads", "num_encoder_attention_heads", "num_decoder_attention_heads"), 4),
    **dict.fromkeys(("num_key_value_heads", "num_kv_heads", "multi_query_group_num"), 2),
    **dict.fromkeys(("intermediate_size", "encoder_ffn_dim", "decoder_ffn_dim", "ffn_dim", "d_ff", "n_inner"), 40),
    **dict.fromkeys(("moe_intermediate_size", "shared_expert_intermediate_size", "ffn_hidden_size"), 24),
    **dict.fromkeys(("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"), 4),
    **dict.fromkeys(("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "max_target_positions"), LENGTH),
    **dict.fromkeys(("initializer_range", "init_std", "initializer_std", "initializer_factor"), 0.3),
    **dict.fromkeys(("head_dim", "d_kv", "attention_head_dim", "kv_channels"), 8),
    **dict.fromkeys(("dropout", "attention_dropout", "hidden_dropout_prob", "attention_probs_dropout_prob"), 0.0),
    **{"n_group": 1, "topk_group": 1, "num_experts_per_tok": 2, "first_k_dense_replace": 1, "moe_topk": 2},
    **{"q_lora_rank": 16, "kv_lora_rank": 16, "qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "v_head_dim": 8},
    **{"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1},
    **{
        "type_vocab_size": 2,
        "num_hidden_groups": 1,
        "rotary_dim": 4,
        "state_size": 8,
        "mamba_d_state": 8,
        "mamba_n_heads": 8,
        "mamba_d_head": 8,
    },
    **{"sliding_window": 16, "num_nextn_predict_layers": 0, "num_mtp_layers": 0},
}
# By what a model is asked for first.
KINDS = ("MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES", "MODEL_FOR_CAUSAL_LM_MAPPING_NAMES")
KINDS += ("MODEL_FOR_MASKED_LM_MAPPING_NAMES", "MODEL_MAPPING_NAMES")


def types():
    """Every model type with a class for text, and the name of the class."""
    from transformers.models.auto import modeling_auto

    found = {}
    for kind in KINDS:
        for name, made in getattr(modeling_auto, kind).items():
            found.setdefault(name, made if isinstance(made, str) else made[0])
    return found


def tiny(config, *, causal):
    """Make a config small in place, and those inside it."""
    for name, value in SIZES.items():
        if isinstance(getattr(config, name, None), (int, float)) or (
            name.endswith("_token_id") and hasattr(config, name)
        ):
            with contextlib.suppress(Exception):
                setattr(config, name, value)
    if hasattr(config, "kv_lora_rank"):  # each head has a key of its own
        config.num_key_value_heads = SIZES["num_attention_heads"]
    if hasattr(config, "attention_window"):  # one for each layer, or a number
        config.attention_window = 8
    for name in ("layer_types", "mlp_layer_types"):
        kinds = getattr(config, name, None)
        if kinds:
            n = getattr(config, "num_hidden_layers", 2)
            seen = list(dict.fromkeys(kinds))
            # Each kind of layer at least once.
            with contextlib.suppress(AttributeError):  # where it is computed
                config.num_hidden_layers = max(n, len(seen))
                setattr(config, name, (seen * n)[: config.num_hidden_layers])
    for inner in getattr(config, "sub_configs", None) or {}:
        if hasattr(getattr(config, inner, None), "to_dict"):
            tiny(getattr(config, inner), causal=causal)
    if causal and hasattr(config, "is_decoder"):
        config.is_decoder = True
    return config


def made(name):
    """The tiny model of a type, and its class's name."""
    import torch
    import transformers
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    kind = types()[name]
    config = CONFIG_MAPPING[name]()
    tiny(config, causal="ForCausalLM" in kind or "LMHead" in kind)
    torch.manual_seed(0)
    model = getattr(transformers, kind)(config)
    numbers = sum(each.numel() for each in model.parameters())
    if numbers > 30_000_000:
        raise ValueError(f"not tiny: {numbers:,} numbers")
    # Zeros, which some models begin with, would hide what they multiply.
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for each in model.parameters():
            if each.numel() and not each.any():
                each.copy_(torch.randn(each.shape, generator=generator) * 0.1)
    return model.eval()


def one(name):
    """Audit a type in this process and print its result."""
    import torch
    import transformers

    torch.set_num_threads(1)
    transformers.utils.logging.set_verbosity_error()
    warnings.simplefilter("ignore")
    told = {"type": name, "class": types()[name], "date": date.today().isoformat()}
    told |= {"transformers": transformers.__version__, "torch": torch.__version__}
    try:
        model = made(name)
    except Exception as error:
        return told | {"not_made": f"{type(error).__name__}: {str(error)[:300]}"}
    try:
        import posembed

        report = posembed.audit(model)
    except Exception as error:
        return told | {"not_audited": f"{type(error).__name__}: {str(error)[:300]}"}
    return told | {"checks": report.to_dict()["checks"]}


def audit_in_a_process(name):
    """The result of a type, or that it took too long or ended its process.

    The process is a fork of this one, which has imported everything; each import would take seconds.
    """
    receiving, sending = FORK.Pipe(duplex=False)
    child = FORK.Process(target=lambda: sending.send(json.dumps(quietly(name))))
    child.start()
    sending.close()
    try:
        if not receiving.poll(LIMIT):
            return {"type": name, "not_audited": f"longer than {LIMIT} seconds"}
        return json.loads(receiving.recv())
    except EOFError:
        return {"type": name, "not_audited": f"the process ended with {child.exitcode}"}
    finally:
        child.kill()
        child.join()


def quietly(name):
    """The same, without what models print."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        return one(name)


def table():
    """What is stored: verdicts by check, and each broken one."""
    results = [json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))]
    counts = {}
    for result in results:
        for check in result.get("checks", ()):
            counts.setdefault(check["check"], Counter())[check["verdict"]] += 1
    print(f"{sum('checks' in each for each in results)} of {len(results)} types audited")
    for check, verdicts in counts.items():
        print(f"{check:36}", *(f"{verdicts[v]:4} {v}" for v in ("holds", "broken", "does not apply", "not decided")))
    for result in results:
        for check in result.get("checks", ()):
            if check["verdict"] == "broken":
                error = check["error"] if check["error"] is None else f"{check['error']:.0e}"
                print(result["type"], check["part"], check["check"], error, check["kind"], check["reason"], sep=" | ")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("types", nargs="*")
    parser.add_argument("--table", action="store_true")
    asked = parser.parse_args()
    if asked.table:
        table()
        return
    quietly("t5")  # imports, before the first fork, what each process would import anew

    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in asked.types or types():
        path = FOLDER / f"{name}.json"
        if asked.types or not path.exists():
            result = audit_in_a_process(name)
            path.write_text(json.dumps(result, indent=1) + "\n")
            broken = [each["check"] for each in result.get("checks", ()) if each["verdict"] == "broken"]
            print(name, result.get("not_made") or result.get("not_audited") or broken, flush=True)


if __name__ == "__main__":
    main()
