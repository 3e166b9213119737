"""A model that is saved and loaded again, which transformers makes on the meta device first."""

from __future__ import annotations

from tempfile import TemporaryDirectory
from typing import Any

from ...inference import eval_mode
from ..comparison import judge
from ..load import quiet
from ..report import CheckResult
from ..subject import Run, Subject

# Numbers of a model: 2 GiB in float64.
LARGEST = 2**28


def saved_and_loaded(subject: Subject, check: str) -> CheckResult:
    """The same logits as before."""
    told: dict[str, Any] = {"check": check, "part": subject.part}
    model: Any = subject.whole
    if not subject.of_transformers or subject.again is None:
        return CheckResult(verdict="does not apply", reason="only models of transformers know how to be saved", **told)
    if sum(each.numel() for each in model.parameters()) > LARGEST:
        return CheckResult(verdict="not decided", reason="too large to be written to disk", **told)
    dtype = next(model.parameters()).dtype
    with TemporaryDirectory() as folder, quiet():
        model.save_pretrained(folder)
        loaded = type(model).from_pretrained(folder, dtype=dtype, attn_implementation=model.config._attn_implementation)
    again = subject.again(loaded)
    again.seed, again.fixed = subject.seed, subject.fixed
    with eval_mode(loaded):
        result = judge(subject, check, subject.logits(Run(subject.text())), again.logits(Run(subject.text())))
    if result.verdict != "broken":
        return result
    missing = "what is computed and not saved differs, such as angles: rounded by .bfloat16(), or not made anew"
    return CheckResult(**vars(result) | {"kind": missing, "script": _script(type(model).__name__)})


def _script(name: str) -> str:
    return "\n".join(
        [
            "import torch",
            f"from transformers import {name}",
            f"model = ...  # the {name} that was audited, in eval mode",
            'model.save_pretrained("copy")',
            f'again = {name}.from_pretrained("copy").eval()',
            "ids = torch.arange(5, 15)[None]",
            "print((model(input_ids=ids)[0] - again(input_ids=ids)[0]).abs().max())",
        ]
    )
