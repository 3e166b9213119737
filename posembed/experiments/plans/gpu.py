"""The runs of the NoPos study in a size for one GPU."""

from __future__ import annotations

from dataclasses import replace

from ..config import RunConfig
from .study import Part, Study

# What makes a GPU fast.
ON_A_GPU = RunConfig(precision="bfloat16", compile=True, device="cuda")
# About 25 million parameters and 213 million characters read, 30 runs in half an hour on a fast one.
GPU_SCHEMES = ("nopos", "learned", "sinusoidal", "alibi", "rope")
GPU_RATES, GPU_SEEDS, GPU_TUNING_STEPS = (5e-4, 1e-3, 2e-3), (1, 2, 3), 500
GPU = replace(
    ON_A_GPU,
    data="enwik8",
    length=512,
    n_layers=8,
    d_model=512,
    n_heads=8,
    batch_size=64,
    steps=6500,
    warmup=300,
    betas=(0.9, 0.95),
    preset="gpu",
)


def gpu() -> Study:
    """The study's main comparison in a larger model, with rates of its own.

    Example:
        >>> from posembed.experiments.plans.gpu import gpu
        >>> gpu().parts[0].runs[0].n_layers
        8
    """
    parts = [
        Part(
            scheme,
            tuple(replace(GPU, scheme=scheme, seed=seed) for seed in GPU_SEEDS),
            tuple(replace(GPU, scheme=scheme, steps=GPU_TUNING_STEPS, learning_rate=rate) for rate in GPU_RATES),
        )
        for scheme in GPU_SCHEMES
    ]
    remark = "the text is the file 'enwik8' in this folder: the first hundred million bytes of Wikipedia"
    return Study("nopos", "gpu", tuple(parts), remark)
