"""The runs of Haviv et al. (2022), in the sizes of the paper."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .gpu import ON_A_GPU
from .study import Part, Study

PAPER_SCHEMES = ("nopos", "learned", "sinusoidal", "alibi")
# Baevski and Auli's model and recipe (fairseq's transformer_lm_wiki103) in shorter pieces; the paper's table 5 and its
# authors' scripts: 18 pieces on each of eight GPUs. Of the betas NAG takes the first, fairseq's momentum.
WIKITEXT = replace(
    ON_A_GPU,
    data="wikitext-103",
    tokens="bpe",
    vocab_size=32_768,
    length=512,
    n_layers=16,
    d_model=1024,
    d_ff=4096,
    n_heads=8,
    batch_size=144,
    steps=286_000,
    optimizer="nag",
    betas=(0.99, 0.999),
    learning_rate=1.0,
    lowest_rate=1e-4,
    warmup=16_000,
    weight_decay=0.0,
    dropout=0.3,
    largest_gradient=0.1,
    preset="paper",
)
# The paper's tables 5 and 6: GPT-3's sizes, GPT-2's number of tokens in the vocabulary, 256 thousand tokens a step; a
# thousand is 1024, by the scripts. Of the scripts are also the betas and the end of the rate, zero; they let it fall in
# a straight line and cut no gradients. The Pile itself is not offered any more; this is it without the parts under
# copyright.
PILE = replace(
    WIKITEXT,
    data="datasets:monology/pile-uncopyrighted",
    vocab_size=50_257,
    length=1024,
    batch_size=256,
    steps=10_000,
    optimizer="adamw",
    betas=(0.9, 0.98),
    learning_rate=2e-3,
    lowest_rate=0.0,
    warmup=500,
    weight_decay=0.01,
    dropout=0.0,
    largest_gradient=1.0,
)
# A step is taken in parts, for the memory of a GPU.
PILE_SIZES: dict[str, dict[str, Any]] = {
    "125M": {"n_layers": 12, "d_model": 768, "d_ff": 3072, "n_heads": 12, "accumulate": 8},
    "350M": {"n_layers": 24, "d_model": 1024, "d_ff": 4096, "n_heads": 16, "accumulate": 8},
    "760M": {"n_layers": 24, "d_model": 1536, "d_ff": 6144, "n_heads": 16, "accumulate": 16},
    "1.3B": {"n_layers": 24, "d_model": 2048, "d_ff": 8192, "n_heads": 32, "accumulate": 16},
}
PILE_LENGTHS = (256, 512, 2048)
# Of RoBERTa's large size, by table 5, which does not give the masking rate; BERT's and RoBERTa's is 15 %.
MASKED = replace(
    PILE,
    **PILE_SIZES["350M"] | {"accumulate": 32},
    objective="masked",
    masking_rate=0.15,
    length=128,
    batch_size=8192,
    learning_rate=1e-3,
    dropout=0.1,
)


def paper() -> Study:
    """The paper's runs, one seed each; see the remark for what differs.

    Example:
        >>> from posembed.experiments.plans.paper import paper
        >>> paper().parts[0].name
        'WikiText-103, nopos'
    """
    shapes = {"WikiText-103": WIKITEXT}
    shapes |= {f"Pile, {size}": replace(PILE, **sizes) for size, sizes in PILE_SIZES.items()}
    largest = shapes["Pile, 1.3B"]
    shapes |= {
        f"Pile, 1.3B, length {length}": replace(largest, length=length, batch_size=256 * 1024 // length)
        for length in PILE_LENGTHS
    }
    shapes["Pile, masked"] = MASKED
    parts = [
        Part(f"{name}, {scheme}", (replace(shape, scheme=scheme, seed=1),))
        for name, shape in shapes.items()
        for scheme in PAPER_SCHEMES
    ]
    remark = (
        "sizes, batches, steps, optimizers, highest rates, warm-up, weight decay and dropout are the paper's; tokens "
        "are byte pairs of the text, logits a plain softmax, dropout has one rate, and the rest of the model is as "
        "everywhere in posembed; on the Pile, the cosine, the largest gradient and the masking rate are ours, and the "
        "text is the part of it that is still offered; --data gives another text"
    )
    return Study("nopos", "paper", tuple(parts), remark)
