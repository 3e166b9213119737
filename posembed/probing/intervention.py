"""What a running model loses when the positions in its table are erased or shifted."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from .._evaluating import evaluating
from .._plain import plain
from ..errors import ProbeInputError
from ..models import LanguageModel
from ..tables import find_position_rows, with_position_table
from ._random import checked_seed
from ._rows import RowChoice, chosen_rows

Kind = Literal["erase", "shift"]
Model = TypeVar("Model", bound=nn.Module)

# A singular value below this part of the largest is the rounding of float32: the table has nothing in that direction.
RANK_TOLERANCE = 1e-6
# How far the products of a basis may be from those of an orthonormal one.
BASIS_TOLERANCE = 1e-4
# The label that the losses of transformers leave out.
IGNORED = -100


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
    chosen = chosen_rows(table, rows, at_least=2, purpose="a position subspace")
    values, span = _span(torch.from_numpy(chosen.x))
    return span[: _count(n_components, values)]


@contextmanager
def with_position_subspace(
    model: Model,
    subspace: Float[Tensor, "n_components d_model"],
    *,
    erase: bool | None = None,
    shift: int | None = None,
    part: str | None = None,
) -> Iterator[Model]:
    """Erase or shift what a model's position table says in a subspace, for the length of a with block.

    Erased, all rows have the mean row's coordinates in the subspace. Shifted by k, row p has the coordinates of row
    p + k there, and beyond the ends of the table those of the last or first row. Outside the subspace every row stays.
    The table is put back bit for bit, as by `with_position_table`.

    Args:
        model: a model of transformers, or posembed's own, with a position table.
        subspace: an orthonormal basis, such as `position_subspace` finds.
        erase: True to erase; the default where no shift is given.
        shift: by how many positions to shift instead.
        part: for models with several tables, which one.

    Yields:
        The model itself.

    Raises:
        ProbeInputError: a basis that is not orthonormal or has another width than the table, a shift that is not a
            whole number other than zero, or both or neither asked for.
        PositionTableError: the model has no table, or several and `part` names none of them.

    Example:
        >>> import torch
        >>> from posembed import load_encoder
        >>> from posembed.probing import position_subspace, with_position_subspace
        >>> model, tokenizer = load_encoder()
        >>> ids = tokenizer("the dog bit the man", return_tensors="pt")
        >>> before = model(**ids).last_hidden_state
        >>> with with_position_subspace(model, position_subspace(model), erase=True):
        ...     torch.allclose(model(**ids).last_hidden_state, before)
        False
    """
    if (shift is None and erase is False) or (shift is not None and erase):
        raise ProbeInputError(f"erase={erase} with shift={shift} asks for nothing or for both; ask for one")
    table = _table_of(model, part)
    basis = _checked_basis(subspace, table.shape[1])
    moves = _moves(table, basis, None if shift is None else _checked_shift(shift, len(table)))
    with with_position_table(model, table + moves @ basis, part=part):
        yield model


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
        """Sum up some draws."""
        return cls(sum(values) / len(values), min(values), max(values), tuple(values))

    def __str__(self) -> str:
        return f"{self.mean:.4g} ({self.low:.4g} to {self.high:.4g} in {len(self.values)} draws)"


@dataclass(frozen=True)
class InterventionResult:
    """What a model loses with the positions of its table.

    Attributes:
        kind: "erase" or "shift".
        shift: by how many positions; None where they were erased.
        measure: what the numbers are.
        n_components: the dimension of the subspace.
        variance: the share of the table's variance in it.
        intact: the measure of the model as it is.
        changed: with the subspace erased or shifted.
        control: with a random subspace of the same dimension, inside what the table's rows span, erased or shifted in
            its place. It changes the table less than the principal components do.
        control_same_size: with each row moved as far as by the intervention, in random directions instead, so that
            positions can still be read: what a disturbance of this size does by itself.

    Example:
        >>> from posembed.probing import Control, InterventionResult
        >>> control = Control.of([1.0, 1.1])
        >>> print(InterventionResult("erase", None, "loss", 3, 0.9, 1.0, 2.5, control, control))
        erase 3 components, 90.0 % of the table's variance: loss 1 -> 2.5
          random subspace of the same dimension: 1.05 (1 to 1.1 in 2 draws)
          rows moved as far in random directions: 1.05 (1 to 1.1 in 2 draws)
    """

    kind: Kind
    shift: int | None
    measure: str
    n_components: int
    variance: float
    intact: float
    changed: float
    control: Control
    control_same_size: Control

    @property
    def difference(self) -> float:
        """How much larger the measure is after the intervention."""
        return self.changed - self.intact

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, text, lists and dictionaries, ready for JSON."""
        return plain(self) | {"difference": plain(self.difference)}

    def __str__(self) -> str:
        what = self.kind if self.shift is None else f"{self.kind} by {self.shift}"
        return (
            f"{what} {self.n_components} components, {100 * self.variance:.1f} % of the table's variance: "
            f"{self.measure} {self.intact:.4g} -> {self.changed:.4g}\n"
            f"  random subspace of the same dimension: {self.control}\n"
            f"  rows moved as far in random directions: {self.control_same_size}"
        )


def intervene(
    model: nn.Module,
    batches: Iterable[Any],
    *,
    n_components: int | float = 0.9,
    kind: Kind = "erase",
    shift: int = 1,
    measure: Callable[[nn.Module, Any], float] | None = None,
    n_draws: int = 8,
    part: str | None = None,
    seed: int = 0,
) -> InterventionResult:
    """Erase or shift the position subspace of a model's table and measure what the model loses, beside two controls.

    A loss after erasing directions of much variance may come from the size of the change alone. So the same number of
    random directions is erased, and each row is moved as far in random directions. Compare `changed` with the highest
    of either.

    The model runs in eval mode without gradients and is put back as it was.

    Args:
        model: a model of transformers, or posembed's own, with a position table.
        batches: what to run it on: dictionaries of its arguments, or tensors. All are kept.
        n_components: how many principal components, or the share of the variance that they are to hold.
        kind: "erase" or "shift".
        shift: by how many positions, where kind is "shift".
        measure: from the model and a batch to a number, whose mean over the batches is taken. By default the model's
            own loss where batches hold ``labels``, each batch counting by its labels that are not -100; else the mean
            over tokens of the relative change of the last hidden state, which is 0 for the intact model.
        n_draws: of random directions.
        part: for models with several tables, which one: "encoder", "decoder", "text", "vision".
        seed: of the draws.

    Returns:
        The measure of the intact model, of the changed one, and of the controls.

    Raises:
        ProbeInputError: no batches, an unknown kind, components that the table does not have, labels for a model
            without a loss, or only for some batches.
        PositionTableError: the model has no table, or several and `part` names none of them.
        ProbeInputError: a row of the table, or the measure of the model as it is, is NaN or infinite.

    Example:
        >>> from posembed import load_encoder
        >>> from posembed.probing import intervene
        >>> model, tokenizer = load_encoder()
        >>> batch = tokenizer(["the dog bit the man", "it rains"], padding=True, return_tensors="pt")
        >>> found = intervene(model, [batch], n_components=8, n_draws=2)
        >>> found.measure, found.intact
        ('relative change of the last hidden state', 0.0)
        >>> found.changed > found.control.high
        True
    """
    if kind not in ("erase", "shift"):
        raise ProbeInputError(f"kind is {kind!r}; choose 'erase' or 'shift'")
    kept = list(batches)
    _check_whole("the number of batches", len(kept))
    _check_whole("n_draws", n_draws)
    table = _table_of(model, part)
    steps = _checked_shift(shift, len(table)) if kind == "shift" else None
    values, span = _span(table)
    basis = span[: _count(n_components, values)]
    moves, draws = _moves(table, basis, steps), list(_random_bases(span, len(basis), n_draws, seed))
    with evaluating(model):
        name, measured = _measurement(model, kept, measure)

        def with_moves(moved: Tensor) -> float:
            with with_position_table(model, table + moved, part=part):
                return measured()

        return InterventionResult(
            kind=kind,
            shift=steps,
            measure=name,
            n_components=len(basis),
            variance=float((values[: len(basis)] ** 2).sum() / (values**2).sum()),
            intact=_checked_measure(measured(), name),
            changed=with_moves(moves @ basis),
            control=Control.of([with_moves(_moves(table, each, steps) @ each) for each in draws]),
            control_same_size=Control.of([with_moves(moves @ each) for each in draws]),
        )


# The table and its subspaces.


def _table_of(model: nn.Module, part: str | None) -> Float[Tensor, "n_positions d_model"]:
    rows = find_position_rows(model, part=part).rows.detach().cpu()
    return torch.from_numpy(chosen_rows(rows, None, at_least=2, purpose="an intervention").x)


def _span(table: Float[Tensor, "n d_model"]) -> tuple[Float[Tensor, " rank"], Float[Tensor, "rank d_model"]]:
    """The singular values of the centred rows, falling, and the directions that belong to them."""
    # The largest entry first, so that no square overflows.
    largest = table.abs().max()
    moved = table / largest if largest > 0 else table
    _, values, directions = torch.linalg.svd(moved - moved.mean(dim=0), full_matrices=False)
    if values[0] <= RANK_TOLERANCE**2 * len(table) ** 0.5:
        raise ProbeInputError("the rows of the table are all alike, so no subspace tells its positions apart")
    rank = int((values > RANK_TOLERANCE * values[0]).sum())
    return values[:rank], directions[:rank]


def _count(n_components: Any, values: Float[Tensor, " rank"]) -> int:
    if isinstance(n_components, float) and 0 < n_components < 1:
        shares = (values**2).cumsum(0) / (values**2).sum()
        return min(int((shares < n_components).sum()) + 1, len(values))
    if isinstance(n_components, int) and not isinstance(n_components, bool) and 1 <= n_components <= len(values):
        return n_components
    raise ProbeInputError(
        f"n_components is {n_components!r}; it must be a whole number from 1 to {len(values)}, the dimensions that the "
        "rows span, or a share of the variance above 0 and below 1"
    )


def _moves(
    table: Float[Tensor, "n_positions d_model"], basis: Float[Tensor, "k d_model"], steps: int | None
) -> Float[Tensor, "n_positions k"]:
    """By how much each row moves along each direction."""
    coordinates = (table - table.mean(dim=0)) @ basis.T
    if steps is None:
        return -coordinates
    taken = (torch.arange(len(table)) + steps).clamp(0, len(table) - 1)
    return coordinates[taken] - coordinates


def _random_bases(
    span: Float[Tensor, "rank d_model"], dimension: int, n_draws: int, seed: int
) -> Iterator[Float[Tensor, "dimension d_model"]]:
    """Yield orthonormal directions inside the span."""
    generator = torch.Generator().manual_seed(checked_seed(seed))
    for _ in range(n_draws):
        drawn = torch.randn(len(span), dimension, dtype=span.dtype, generator=generator)
        yield torch.linalg.qr(drawn).Q.T @ span


# What is measured.


def _measurement(
    model: nn.Module, batches: Sequence[Any], measure: Callable[[nn.Module, Any], float] | None
) -> tuple[str, Callable[[], float]]:
    """The name of a measure, and the measure of the model as it is whenever that is called."""
    if measure is not None:
        name = getattr(measure, "__name__", type(measure).__name__)
        return name, lambda: sum(float(measure(model, batch)) for batch in batches) / len(batches)
    labelled = [isinstance(batch, Mapping) and batch.get("labels") is not None for batch in batches]
    if not any(labelled):
        before = [_states(model, batch) for batch in batches]
        return "relative change of the last hidden state", lambda: _relative_change(model, batches, before)
    if not all(labelled):
        raise ProbeInputError(f"{sum(labelled)} of {len(batches)} batches have labels; give labels to all or none")
    if "labels" not in inspect.signature(model.forward).parameters:
        raise ProbeInputError(
            f"{type(model).__name__} takes no labels; give one with a head, or batches without labels"
        )
    return "loss", lambda: _loss(model, batches)


def _loss(model: nn.Module, batches: Sequence[Any]) -> float:
    total = count = 0.0
    for batch in batches:
        weight = int((torch.as_tensor(batch["labels"]) != IGNORED).sum())
        if weight:
            total += weight * float(_run(model, batch).loss)
            count += weight
    return total / count if count else math.nan


def _relative_change(model: nn.Module, batches: Sequence[Any], before: Sequence[Tensor]) -> float:
    changes = []
    for batch, old in zip(batches, before, strict=True):
        new = _states(model, batch)
        # A token whose state is zero has changed by nothing or without bounds.
        sizes = old.norm(dim=-1).clamp(min=torch.finfo(old.dtype).tiny)
        changes.append(((new - old).norm(dim=-1) / sizes)[_tokens(model, batch, old)])
    return float(torch.cat(changes).mean())


def _states(model: nn.Module, batch: Any) -> Float[Tensor, "*batch d_model"]:
    """The last hidden state, in float64, of a model without its head."""
    body = model.transformer if isinstance(model, LanguageModel) else getattr(model, "base_model", model)
    output = _run(body, batch)
    states = getattr(output, "last_hidden_state", output)
    if not isinstance(states, Tensor):
        raise ProbeInputError(f"{type(model).__name__} returns a {type(output).__name__} without states; give measure=")
    return states.double()


def _tokens(model: Any, batch: Any, states: Tensor) -> Tensor:
    """Where there are tokens, and no padding."""
    stacks = bool(getattr(getattr(model, "config", None), "is_encoder_decoder", False))
    mask = batch.get("decoder_attention_mask" if stacks else "attention_mask") if isinstance(batch, Mapping) else None
    if mask is None or tuple(mask.shape) != tuple(states.shape[:-1]):
        return torch.ones(states.shape[:-1], dtype=torch.bool, device=states.device)
    return mask.bool().to(states.device)


def _run(model: nn.Module, batch: Any) -> Any:
    device = next(model.parameters()).device
    if isinstance(batch, Mapping):
        return model(**{name: each.to(device) if isinstance(each, Tensor) else each for name, each in batch.items()})
    return model(batch.to(device))


# What is asked for.


def _checked_measure(value: float, name: str) -> float:
    if not math.isfinite(value):
        raise ProbeInputError(f"the {name} of the model as it is comes out as {value}; look at its batches and labels")
    return value


def _checked_basis(subspace: Tensor, width: int) -> Float[Tensor, "k d_model"]:
    if subspace.ndim != 2 or subspace.shape[1] != width or not len(subspace):
        raise ProbeInputError(f"the subspace has shape {tuple(subspace.shape)}; it must be (n_components, {width})")
    basis = subspace.detach().cpu().double()
    if not bool(((basis @ basis.T - torch.eye(len(basis))).abs() <= BASIS_TOLERANCE).all()):
        raise ProbeInputError("the subspace is no orthonormal basis; torch.linalg.qr makes one, or position_subspace")
    return basis


def _checked_shift(shift: Any, n_rows: int) -> int:
    if not isinstance(shift, int) or isinstance(shift, bool) or not 0 < abs(shift) < n_rows:
        raise ProbeInputError(f"shift is {shift!r}; it must be a whole number other than 0, below {n_rows} either way")
    return shift


def _check_whole(name: str, value: Any) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ProbeInputError(f"{name} is {value!r}; it must be a whole number of at least 1")
