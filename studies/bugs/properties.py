"""What the tests of this package ask of a scheme, asked of the parts of a bug: identities first, formulas last.

An identity needs no right answer beside it. A formula is compared with one that is right.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from .reference import D_HEAD, ROWS, Reference

# Positions of a long text, at which half precision confuses neighbours.
FAR = torch.arange(1000, 1020)
NEAR = torch.arange(20)


def _turned(model: Reference, at: Tensor, layer: int = 0) -> tuple[Tensor, Tensor]:
    """A query and a key, the same at every position, and turned by it: "seq d_head"."""
    draw = torch.Generator().manual_seed(0)
    q, k = (torch.randn(1, 1, 1, D_HEAD, generator=draw, dtype=torch.float64) for _ in range(2))
    q, k = (each.expand(1, model.heads, len(at), D_HEAD) for each in (q, k))
    return model.turn(q, at[None], layer)[0, -1], model.turn(k, at[None], layer)[0, -1]


def _bias(model: Reference, at: Tensor) -> Tensor:
    return model.bias(at[None], at[None])[0].double()


def _even(matrix: Tensor) -> bool:
    """Whether each diagonal has one value, as far as it is seen."""
    return all(float(matrix.diagonal(k, -2, -1).std(-1).max()) < 1e-6 for k in range(1 - len(NEAR) // 2, 1))


def products_by_offset(model: Reference) -> bool:
    """The product of a turned query and key hangs on the offset alone."""
    return all(_even(q @ k.T) for q, k in (_turned(model, at) for at in (NEAR, FAR)))


def lengths_stay(model: Reference) -> bool:
    """What is turned keeps its length."""
    q, _ = _turned(model, NEAR)
    return bool((q.norm(dim=-1) - q.norm(dim=-1)[0]).abs().max() < 1e-9)


def turns_at_all(model: Reference) -> bool:
    """Neighbouring positions turn a query in two ways, near and far out."""
    return all(bool(_turned(model, at)[0].diff(dim=0).norm(dim=-1).min() > 1e-3) for at in (NEAR, FAR))


def bias_by_offset(model: Reference) -> bool:
    """The bias hangs on the offset alone, also of one query behind many keys."""
    whole = _bias(model, NEAR)
    last = model.bias(NEAR[None, -1:], NEAR[None])[0].double()
    return _even(whole) and bool((last[:, 0] - whole[:, -1]).abs().max() < 1e-6)


def bias_falls(model: Reference) -> bool:
    """No key further back has a higher bias than a nearer one."""
    return bool((_bias(model, NEAR)[:, -1].diff(dim=-1) >= -1e-9).all())


def rows_differ(model: Reference) -> bool:
    """Neighbouring positions of one text get two rows, and two texts the same."""
    rows = model.rows(torch.arange(ROWS).expand(2, -1))
    return bool(rows[0].diff(dim=0).norm(dim=-1).min() > 1e-3) and torch.allclose(rows[0], rows[1])


def rows_of_one_length(model: Reference) -> bool:
    """Sine and cosine of one angle: all rows have one length."""
    length = model.rows(torch.arange(ROWS)[None])[0].norm(dim=-1)
    return bool((length - length[0]).abs().max() < 1e-4)


def row_by_number(model: Reference) -> bool:
    """Position p is given row p, behind those that stand before position 0; past the last there is none."""
    assert model.wpe is not None
    try:
        model.rows(torch.tensor([[ROWS + 3]]))
    except IndexError:
        return torch.equal(model.rows(torch.arange(5)[None])[0], model.wpe.weight[model.offset :][:5])
    return False


def formula_of_turns(model: Reference, right: Reference) -> bool:
    """Products of turned queries and keys are those of the formula, in every layer."""
    pairs = [(_turned(each, at, layer)) for each in (model, right) for layer in range(2) for at in (NEAR, FAR)]
    logits = [q @ k.T for q, k in pairs]
    return all(torch.allclose(one, other, atol=1e-6) for one, other in zip(logits[:4], logits[4:], strict=True))


def formula_of_bias(model: Reference, right: Reference) -> bool:
    """The bias is that of the formula."""
    return torch.allclose(_bias(model, NEAR), _bias(right, NEAR), atol=1e-6)


def formula_of_rows(model: Reference, right: Reference) -> bool:
    """Rows are those of the formula."""
    at = torch.arange(ROWS)[None]
    return torch.allclose(model.rows(at), right.rows(at), atol=1e-6)


IDENTITIES: dict[str, dict[str, Callable[[Reference], bool]]] = {
    "rope": {
        "products by offset alone": products_by_offset,
        "lengths stay": lengths_stay,
        "neighbours turn differently": turns_at_all,
    },
    "alibi": {"bias by offset alone": bias_by_offset, "bias falls": bias_falls},
    "t5": {"bias by offset alone": bias_by_offset},
    "table": {"neighbouring rows differ": rows_differ, "row p at position p": row_by_number},
    "sinusoid": {"neighbouring rows differ": rows_differ, "rows of one length": rows_of_one_length},
}
FORMULAS: dict[str, Callable[[Reference, Reference], bool]] = {
    "rope": formula_of_turns,
    "alibi": formula_of_bias,
    "t5": formula_of_bias,
    "table": formula_of_rows,
    "sinusoid": formula_of_rows,
}
FORMULA = "the formula"
NAMES = [*dict.fromkeys(name for each in IDENTITIES.values() for name in each), FORMULA]


def failing(model: Reference, right: Reference) -> list[str]:
    """The properties that a model's parts do not have; what raises is not had either."""

    def asked(question: Callable[..., bool], *models: Reference) -> bool:
        try:
            with torch.no_grad():
                return question(*models)
        except Exception:
            return False

    found = [name for name, question in IDENTITIES[model.scheme].items() if not asked(question, model)]
    return found + [FORMULA] * (not asked(FORMULAS[model.scheme], model, right))
