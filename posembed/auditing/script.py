"""A program of under twelve lines that compares two runs without this package."""

from __future__ import annotations

import torch
from torch import Tensor

from .subject import Run, Subject


def script(subject: Subject, right: Run, tried: Run) -> str:
    """Write the program."""
    lines = ["import torch", *subject.code, "torch.set_grad_enabled(False)"]
    return "\n".join([*lines, *_calls(subject, right, "a"), *_calls(subject, tried, "b"), "print((a - b).abs().max())"])


def _calls(subject: Subject, run: Run, name: str) -> list[str]:
    """Lines that run the model and keep the same tokens."""
    fixed = [f"{key}={_written(value)}" for key, value in subject.fixed.items()]
    steps = [", ".join([f"{k}={_written(v)}" for k, v in step.items()] + fixed) for step in subject.steps(run)]
    read = "[0]" if subject.of_transformers or "cache" in subject.names else ""
    text, keep = "-1:" if len(run.ids) > 1 else ":", ""
    if isinstance(run.keep, range):
        keep = f"[{text}, {run.keep.start}:{run.keep.stop}]"
    elif run.keep is not None or text != ":":
        keep = f"[{text}, {':' if run.keep is None else run.keep}]"
    if not run.pieces:
        return [f"{name} = model({steps[0]}){read}{keep}"]
    cache, kept = subject.names["cache"], ".past_key_values" if subject.of_transformers else "[1]"
    use = ", use_cache=True" if subject.of_transformers else ""
    given = ["None", *(f"out{i}{kept}" for i in range(len(steps)))]
    lines = [f"out{i} = model({step}, {cache}={given[i]}{use})" for i, step in enumerate(steps)]
    return [*lines, f"{name} = torch.cat([{', '.join(f'out{i}{read}' for i in range(len(steps)))}], 1){keep}"]


def _written(value: Tensor) -> str:
    if value.is_floating_point():  # a mask of four axes
        return f"torch.tensor({(value == 0).int().tolist()}).double().log().clamp(min=-1e30)"
    return (
        f"torch.tensor({value.int().tolist()}).bool()"
        if value.dtype == torch.bool
        else f"torch.tensor({value.tolist()})"
    )
