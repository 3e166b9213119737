"""What a running model loses when the positions in its table are erased."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ..errors import ProbeInputError, shown
from ..inference import eval_mode
from ..public import Count, Seed, public
from ..serialization import Record
from ..tables import RowChoice, find_position_rows, with_position_table
from .hidden_states import own_transformer, relative_change, telling
from .rows import chosen_rows

# A singular value below this part of the largest is the rounding of float32: the table has nothing in that direction.
RANK_TOLERANCE = 1e-6


@public(ProbeInputError)
def position_subspace(
    table: Any, *, n_components: int | float = 0.9, rows: RowChoice = None
) -> Float[Tensor, "n_components d_model"]:
    """Find the directions in which the rows of a table differ most: its principal components after centring.

    Args:
        table: what `posembed.load_table` takes.
        n_components: how many, or the share of the variance that they are to hold, above 0 and below 1.
        rows: which rows to look at, as in `probe_table`; all by default.

    Returns:
        An orthonormal basis, the direction of most variance first, in float64.

    Raises:
        ProbeInputError: fewer than two rows, rows that are all alike, or more components than the rows span.
        ProbeInputError: a row holds NaN or infinity.

    Example:
        >>> import torch
        >>> from posembed.probing import position_subspace
        >>> at = torch.arange(50.0)[:, None]
        >>> line = torch.cat([0 * at, at, 0 * at + 7], dim=1)
        >>> position_subspace(line, n_components=1).abs()
        tensor([[0., 1., 0.]], dtype=torch.float64)
    """
    x, _, _ = chosen_rows(table, rows, at_least=2, purpose="a position subspace")
    values, span = _span(torch.from_numpy(x))
    return span[: _count(n_components, values)]


@dataclass(frozen=True)
class Control:
    """What random changes of the table do.

    Attributes:
        mean: over the draws.
        low: the lowest of them.
        high: the highest.
        values: each draw's.

    Example:
        >>> from posembed.probing import Control
        >>> print(Control.of([1.0, 1.5]))
        1.25 (1 to 1.5 in 2 draws)
    """

    mean: float
    low: float
    high: float
    values: tuple[float, ...]

    @classmethod
    def of(cls, values: Sequence[float]) -> Control:
        """Sum up some draws, at least one."""
        return cls(sum(values) / len(values), min(values), max(values), tuple(values))

    def __str__(self) -> str:
        return f"{self.mean:.4g} ({self.low:.4g} to {self.high:.4g} in {len(self.values)} draws)"


@dataclass(frozen=True, repr=False)
class InterventionResult(Record):
    """What a model loses with the positions of its table.

    Attributes:
        n_components: the dimension of the subspace.
        variance: the share of the table's variance in it.
        changed: by how much the last hidden states move where the subspace is erased, as a part of their size: the mean
            over tokens.
        control: the same where a random subspace of that dimension, inside what the table's rows span, is erased in its
            place. It changes the table less than the principal components do.
        control_same_size: with each row moved as far as by the intervention, inside one random subspace instead, so
            that positions can still be read: what a disturbance of this size does by itself.

    Example:
        >>> from posembed.probing import Control, InterventionResult
        >>> control = Control.of([0.1, 0.2])
        >>> print(InterventionResult(3, 0.9, 0.5, control, control))
        3 components with 90.0 % of the table's variance erased: the last hidden state changes by 0.5
          random subspace of the same dimension: 0.15 (0.1 to 0.2 in 2 draws)
          rows moved as far in random directions: 0.15 (0.1 to 0.2 in 2 draws)
    """

    n_components: int
    variance: float
    changed: float
    control: Control
    control_same_size: Control

    def __str__(self) -> str:
        return (
            f"{self.n_components} components with {100 * self.variance:.1f} % of the table's variance erased: "
            f"the last hidden state changes by {self.changed:.4g}\n"
            f"  random subspace of the same dimension: {self.control}\n"
            f"  rows moved as far in random directions: {self.control_same_size}"
        )


@public(ProbeInputError)
def intervene(
    model: nn.Module,
    batches: Iterable[Any],
    *,
    n_components: int | float = 0.9,
    n_draws: Count = 8,
    part: str | None = None,
    name: str | None = None,
    seed: Seed = 0,
) -> InterventionResult:
    """Erase the position subspace of a model's table and measure how its output moves, beside two controls.

    Erased, all rows have the mean row's coordinates in the subspace; outside of it every row stays. What happens after
    erasing directions of much variance may come from the size of the change alone. So the same number of random
    directions is erased, and each row is moved as far inside a random subspace. Compare `changed` with the highest of
    either.

    The model runs in eval mode without gradients and is put back as it was.

    Args:
        model: a model of transformers, or posembed's own, with a position table.
        batches: what to run it on: dictionaries of its arguments, or tensors. All are kept.
        n_components: how many principal components, or the share of the variance that they are to hold.
        n_draws: of random directions.
        part: for models with several tables, which one: "encoder", "decoder", "text", "vision".
        name: of the table in the model, where it has no usual one: that of a parameter, a buffer or an nn.Embedding.
        seed: of the draws.

    Returns:
        How much the last hidden states change, and how much by the controls.

    Raises:
        ProbeInputError: no batches, components that the table does not have, a model that cannot be called with them.
        PositionTableError: the model has no table, or several and neither `part` nor `name` chooses one; a row of it is
            NaN.

    Example:
        >>> from posembed import load_encoder
        >>> from posembed.probing import intervene
        >>> model, tokenizer = load_encoder()
        >>> batch = tokenizer(["the dog bit the man", "it rains"], padding=True, return_tensors="pt")
        >>> found = intervene(model, [batch], n_components=8, n_draws=2)
        >>> found.changed > found.control.high
        True
    """
    if isinstance(batches, Mapping | Tensor):
        raise ProbeInputError("batches is one batch; give a list of them, such as [batch]")
    if not (kept := list(batches)):
        raise ProbeInputError("there are no batches; give at least one")
    found = find_position_rows(model, part=part, name=name)
    rows = found.rows.detach().cpu()
    table = torch.from_numpy(chosen_rows(rows, None, at_least=2, purpose="an intervention")[0])
    values, span = _span(table)
    basis = span[: _count(n_components, values)]
    centred, generator = table - table.mean(dim=0), torch.Generator().manual_seed(seed)
    # Orthonormal directions inside what the rows span.
    drawn = (torch.randn(len(span), len(basis), dtype=span.dtype, generator=generator) for _ in range(n_draws))
    draws = [torch.linalg.qr(each).Q.T @ span for each in drawn]
    moves = centred @ basis.T
    with eval_mode(model):
        before = torch.cat([_states(model, batch) for batch in kept])

        def change(moved: Tensor) -> float:
            with with_position_table(model, table - moved, part=part, name=name):
                return float(relative_change(before, torch.cat([_states(model, batch) for batch in kept])).mean())

        result = InterventionResult(
            n_components=len(basis),
            variance=float(_squares(values)[: len(basis)].sum() / _squares(values).sum()),
            changed=change(moves @ basis),
            control=Control.of([change(centred @ each.T @ each) for each in draws]),
            control_same_size=Control.of([change(moves @ each) for each in draws]),
        )
    if not result.control_same_size.high:
        raise ProbeInputError(f"{found.name} is not looked into for these batches; give some of what it is for")
    return result


def _span(table: Float[Tensor, "n d_model"]) -> tuple[Float[Tensor, " rank"], Float[Tensor, "rank d_model"]]:
    """The singular values of the centred rows, falling, and the directions that belong to them."""
    _, values, directions = torch.linalg.svd(table - table.mean(dim=0), full_matrices=False)
    # Rows that are all alike leave the rounding of their mean.
    if values[0] <= RANK_TOLERANCE**2 * float(table.abs().max()) * len(table) ** 0.5:
        raise ProbeInputError("the rows of the table are all alike, so no subspace tells its positions apart")
    rank = int((values > RANK_TOLERANCE * values[0]).sum())
    return values[:rank], directions[:rank]


def _squares(values: Float[Tensor, " rank"]) -> Float[Tensor, " rank"]:
    """In units of the largest, so that none is infinite."""
    return (values / values[0]) ** 2


def _count(n_components: Any, values: Float[Tensor, " rank"]) -> int:
    if isinstance(n_components, float) and 0 < n_components < 1:
        shares = _squares(values).cumsum(0) / _squares(values).sum()
        return min(int((shares < n_components).sum()) + 1, len(values))
    if isinstance(n_components, int) and not isinstance(n_components, bool) and 1 <= n_components <= len(values):
        return n_components
    raise ProbeInputError(
        f"n_components is {shown(n_components)}; it must be a whole number from 1 to {len(values)}, the dimensions "
        "that the rows span, or a share of the variance above 0 and below 1"
    )


def _states(model: Any, batch: Any) -> Float[Tensor, "tokens d_model"]:
    """The last hidden states of all tokens but padding, in float64, of a model without its head."""
    device = next(model.parameters()).device
    body = own_transformer(model) or getattr(model, "base_model", model)
    named = batch if isinstance(batch, Mapping) else {}
    given = {name: each.to(device) if isinstance(each, Tensor) else each for name, each in named.items()}
    with telling(model, "this batch"):
        output = body(**given) if named else body(batch.to(device))
    states = getattr(output, "last_hidden_state", output)
    two_stacks = getattr(getattr(model, "config", None), "is_encoder_decoder", False)
    mask = named.get("decoder_attention_mask" if two_stacks else "attention_mask")
    # Images have no padding, and a mask of another shape is not of these tokens.
    if mask is None or mask.shape != states.shape[:-1]:
        return states.double().flatten(0, -2)
    return states[mask.bool().to(device)].double()
