"""Check a model for order.

The check is a loop, and whoever needs it once writes it in a minute. The package is the better choice where the answer
has to be trusted without looking: it says how large the error is beside the output, what belongs to rounding, which of
the two relations holds, and shows the permutation where none does.
"""

import torch
from torch import nn

ABSENT = {}


def given(quick):
    """An attention layer without positions, and what it reads, "batch seq d_model"."""
    torch.manual_seed(0)
    return nn.TransformerEncoderLayer(64, 4, batch_first=True), torch.randn(
        2, 8 if quick else 128, 64
    )


def posembed(model, x):
    """A verdict, its error, and a counterexample where there is one; near errors are decided in float64."""
    from posembed import check_equivariance

    report = check_equivariance(model, x)
    return report.verdict == "equivariant", report.max_error


def plain(model, x):
    """The largest error of eight permutations; what is small is for you to say."""
    import torch

    model.eval()
    with torch.no_grad():
        outputs, errors = model(x), []
        for _ in range(8):
            order = torch.randperm(x.shape[1])
            errors.append((model(x[:, order]) - outputs[:, order]).abs().max())
    error = float(max(errors) / outputs.abs().max())
    return error < 1e-5, error


def shown(answer, _):
    """What it found."""
    return f"equivariant: {'yes' if answer[0] else 'no'}, error {answer[1]:.0e}"


def agree(answers, _):
    """All say that it does not see the order."""
    assert all(blind and error < 1e-5 for blind, error in answers.values())
