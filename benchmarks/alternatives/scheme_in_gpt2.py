"""A scheme in GPT-2, in place of its table.

For one scheme, and training at scale, transformers' own door is enough: a registered function of attention is what a
scheme of posembed is put in by as well. To change one layer, one head or anything else on the way, TransformerLens and
nnsight are the better choice: they reach every point of the pass, and posembed reaches positions, and the states
between layers. Its scheme stays in the model when that trains, generates with a cache, reads padded texts, or texts
longer than the table was, and is saved with it.
"""

import torch
from transformers import GPT2Config, GPT2LMHeadModel

from posembed import load_encoder

ABSENT = {
    "x_transformers": "not in GPT-2: it builds models of its own, with ALiBi as a switch",
    "rotary_embedding_torch": "rotations alone",
    "plain": "a subclass of GPT-2's attention, which is what transformers' door makes needless",
}


def given(quick):
    """A small GPT-2 with random weights, ids, and a tokenizer, without which TransformerLens asks the hub for one."""
    torch.manual_seed(0)
    n_layers, length = (1, 16) if quick else (4, 128)
    sizes = {
        "n_embd": 128,
        "n_head": 8,
        "n_positions": length,
        "vocab_size": 1000,
    }
    model = GPT2LMHeadModel(
        GPT2Config(n_layer=n_layers, bos_token_id=0, eos_token_id=0, **sizes)
    )
    return (
        model.eval().requires_grad_(False),
        torch.randint(1000, (4, length)),
        load_encoder().tokenizer,
    )


def posembed(model, ids, tokenizer):
    """Any of the schemes; trains, generates, is saved, and can be taken out again."""
    from posembed.models import use_scheme

    with use_scheme(model, "alibi"):
        return model(ids).logits


def transformers(model, ids, tokenizer):
    """It trains; a cache, padding and loading it again need more lines, and the table is lost."""
    import torch
    from transformers import AttentionInterface
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    def alibi(module, query, key, value, attention_mask, **options):
        at, slopes = torch.arange(query.shape[2]), 2.0 ** -torch.arange(1, 9)
        bias = slopes[:, None, None] * (at - at[:, None])
        bias = bias.masked_fill(at > at[:, None], -torch.inf)
        return sdpa_attention_forward(
            module, query, key, value, bias[None], **options
        )

    AttentionInterface.register("alibi", alibi)
    model.set_attn_implementation("alibi")
    model.transformer.wpe.weight.zero_()
    return model(ids).logits


def transformer_lens(model, ids, tokenizer):
    """For the passes that it hooks into; every other point of the model can be hooked by its name."""
    import torch
    from transformer_lens.model_bridge import TransformerBridge

    def alibi(scores, hook):
        at, slopes = torch.arange(scores.shape[-1]), 2.0 ** -torch.arange(1, 9)
        return scores + slopes[:, None, None] * (at - at[:, None])

    bridge = TransformerBridge.boot_transformers(
        "gpt2", hf_model=model, tokenizer=tokenizer
    )
    silent = ("hook_pos_embed", lambda rows, hook: torch.zeros_like(rows))
    hooks = [
        (f"blocks.{layer}.attn.hook_attn_scores", alibi)
        for layer in range(bridge.cfg.n_layers)
    ]
    return bridge.run_with_hooks(ids, fwd_hooks=[silent, *hooks])


def nnsight(model, ids, tokenizer):
    """For the passes that it traces; any value inside any function of the model can be changed."""
    import torch
    from nnsight import NNsight

    at, slopes = torch.arange(ids.shape[1]), 2.0 ** -torch.arange(1, 9)
    bias = slopes[:, None, None] * (at - at[:, None])
    model.set_attn_implementation("eager")
    traced = NNsight(model)
    with traced.trace(ids):
        traced.transformer.wpe.output[:] = 0
        for block in traced.transformer.h:
            block.attn.source.attention_interface_1.source.nn_functional_softmax_0.input += bias
        logits = traced.output.logits.save()
    return logits


def shown(answer, _):
    """A number that depends on all of it."""
    return f"mean square of the logits {answer.detach().double().square().mean():.6f}"


def agree(answers, _):
    """The same logits up to rounding in float32."""
    assert all(
        torch.allclose(each, answers["posembed"], atol=1e-4)
        for each in answers.values()
    )
