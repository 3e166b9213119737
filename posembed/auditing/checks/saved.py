"""A model that is saved and loaded again, which transformers makes on the meta device first."""

from __future__ import annotations

from tempfile import TemporaryDirectory
from typing import Any

from ...inference import eval_mode
from ...pretrained import quiet
from ..comparison import broken, holds, judge
from ..report import CheckResult
from ..subject import DoesNotApplyError, Run, Subject, UndecidedError

# Numbers of a model: 2 GiB in float64.
LARGEST = 2**28
MISSING = "what is computed and not saved differs, such as angles: rounded by .bfloat16(), or not made anew"
SCRIPT = """import torch
from transformers import {0}
model = ...  # the {0} that was audited, in eval mode
model.save_pretrained("copy")
again = {0}.from_pretrained("copy").eval()
ids = torch.arange(5, 15)[None]
print((model(input_ids=ids)[0] - again(input_ids=ids)[0]).abs().max())"""


def saved_and_loaded(subject: Subject) -> CheckResult:
    """The same logits as before."""
    model: Any = subject.whole
    if not subject.of_transformers:
        raise DoesNotApplyError("only models of transformers know how to be saved")
    if sum(each.numel() for each in model.parameters()) > LARGEST:
        raise UndecidedError("too large to be written to disk")
    dtype = next(model.parameters()).dtype
    with TemporaryDirectory() as folder, quiet():
        model.save_pretrained(folder)
        again = type(model).from_pretrained(folder, dtype=dtype, attn_implementation=model.config._attn_implementation)
    run = Run(subject.text())
    with eval_mode(again):
        found = subject.of(again).logits(run)
    error, place = judge(subject, (subject.logits(run) - found).abs().amax((0, 2)).nan_to_num(float("inf")))
    if place is None:
        return holds(error=error)
    return broken(MISSING, error=error, position=place, script=SCRIPT.format(type(model).__name__))
