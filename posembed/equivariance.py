"""Does a function see the order of its tokens? A numeric check with a counterexample."""

from __future__ import annotations

import copy
import inspect
import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

import torch
from jaxtyping import Int, Shaped
from torch import Tensor, nn

from .errors import EquivarianceInputError, NonDeterministicError, PositionTableError
from .inference import eval_mode, reads
from .public import Count, NotNegative, Seed, public
from .tables import find_position_rows

Verdict = Literal["equivariant", "invariant", "neither"]

# The rounding a deep network may add, in units of its largest output. The book's six-layer encoder without positions
# shows 5e-15, 3e-6, 3e-3 and 3e-2 at up to 512 tokens, freshly initialised ones of 24 layers up to 2e-6 in float32. The
# narrow formats leave room for two to four times that and no more, if a real effect is still to be seen. Integers and
# booleans have no rounding.
TOLERANCES = {torch.float64: 1e-12, torch.float32: 1e-5, torch.float16: 1e-2, torch.bfloat16: 6e-2}
# Numbers of a module that is copied for a second look: 2 GiB in float64.
LARGEST_COPY = 2**28


@dataclass(frozen=True)
class Counterexample:
    """The permutation and the output entry where the expected and the actual value lie furthest apart."""

    permutation: tuple[int, ...]
    index: tuple[int, ...]
    expected: float | int
    actual: float | int

    def __str__(self) -> str:
        # As many digits as show two of the difference: of a small effect both numbers begin alike.
        apart, size = abs(self.actual - self.expected) or 1, max(abs(self.actual), abs(self.expected)) or 1
        digits = min(17, max(2, 2 + math.floor(math.log10(size)) - math.floor(math.log10(apart))))
        return (
            f"permutation {list(self.permutation)}: output{list(self.index)} is {self.actual:.{digits}g}, "
            f"expected {self.expected:.{digits}g}"
        )


@dataclass(frozen=True)
class EquivarianceReport:
    """What `check_equivariance` found.

    Attributes:
        verdict: "equivariant" (permuted tokens give permuted outputs), "invariant" (the output ignores the order) or
            "neither".
        max_error: the largest deviation from the relation that the verdict names, in units of the largest absolute
            output; for "neither", from equivariance, or from invariance where the output has no sequence axis.
        equivariance_error: the largest deviation of f(Px) from P f(x); None where the output has no sequence axis.
        invariance_error: the largest deviation of f(Px) from f(x).
        tolerance: the error up to which a relation counts as kept.
        n_permutations: how many permutations were tried.
        counterexample: for "neither", the worst entry; otherwise None.
        token_by_token: whether it is equivariant because no output of a token depends on any other token. That is so of
            a linear layer, and of a model whose tokens lie along another axis than `seq_dim`.
        remark: how an error between rounding and tolerance was decided, or that it was not; that the model's position
            table takes no part; how many places moved, where some hold padding. Mostly empty.

    Example:
        >>> import torch
        >>> from posembed import check_equivariance
        >>> check_equivariance(torch.relu, torch.randn(2, 5, 8)).verdict
        'equivariant'
    """

    verdict: Verdict
    max_error: float
    equivariance_error: float | None
    invariance_error: float
    tolerance: float
    n_permutations: int
    counterexample: Counterexample | None
    token_by_token: bool = False
    remark: str = ""

    def __str__(self) -> str:
        verdict = f"{self.verdict}, token by token" if self.token_by_token else self.verdict
        line = f"{verdict}: error {self.max_error:.1e} of the output's scale over {self.n_permutations} permutations"
        alone = "no output depends on another token: does seq_dim name the axis of the tokens?"
        parts = (line, self.counterexample, self.token_by_token and alone, self.remark)
        return "; ".join(str(part) for part in parts if part)


@public(EquivarianceInputError)
def check_equivariance(
    fn: Callable[..., Any],
    x: Shaped[Tensor, "..."],
    *,
    seq_dim: int | None = None,
    output: str | int | Callable[[Any], Tensor] | None = None,
    along: Mapping[str, Tensor] | None = None,
    n_permutations: Count = 8,
    seed: Seed = 0,
    tolerance: NotNegative | None = None,
) -> EquivarianceReport:
    """Compare fn(Px) with P fn(x) and with fn(x), over random permutations P of the tokens of x.

    A function is permutation equivariant when f(Px) = P f(x) and permutation invariant when f(Px) = f(x)
    (Zaheer et al. 2017, Deep Sets, section 2). An output that does both, a constant one for example, ignores the
    order and is called invariant. Modules run in eval mode and without gradients and are put back as they were.

    An effect of the order below the tolerance looks like rounding, and rounding that a very deep or badly conditioned
    model amplifies beyond it looks like an effect. So where an error lies above the rounding of one operation in
    float32 and below ten times the default tolerance, a module or its bound method is copied and checked again in
    float64; `remark` says so, or why that was not possible. Other functions cannot be copied: give the module itself,
    with `along` and `output` for what the function did, or compute in float64; take large constants off the output.

    Args:
        fn: a function, a module, or a transformers model, which gets x as ``inputs_embeds`` when x is floating point
            and as ``input_ids`` when it is integer.
        x: the input, "... seq ...", of any dtype on any device. It is never written to.
        seq_dim: the axis of x (and of the output) that holds the sequence; by default 1. Floating-point x with two axes
            may be "batch seq" or "seq features", so there it must be said.
        along: what fn is given beside x by these names and belongs to the tokens, with them on the same axis: a mask of
            padding, token types. It moves with them. Fixed inside a function it would stay where it is, and hide other
            tokens each time. Padding itself, where ``attention_mask`` is 0 or a ``key_padding_mask`` is True in any
            row, stays in its place, and only words are permuted.
        output: which part of what fn returns is meant: the name of a field, an index, or a function of it. By
            default a tensor itself, or ``last_hidden_state``, or ``logits``.
        n_permutations: how many permutations to try. The identity is never drawn. Where the sequence has no more
            permutations than this, and up to three tokens, each is tried once.
        seed: of the permutations; the global random state stays as it is.
        tolerance: the error, in units of the largest absolute output, up to which a relation counts as kept. By
            default 1e-12 for float64, 1e-5 for float32, 1e-2 for float16, 6e-2 for bfloat16 and 0 for integers, for the
            coarsest of these among x, the output, the module's parameters and autocast.

    Returns:
        The verdict, its error and, for "neither", a counterexample.

    Raises:
        EquivarianceInputError: x is not a tensor, has one token or only equal ones, or lacks the axis, or `along` does;
            x or an output holds NaN or infinity; fn changes the length of the sequence, reads two sequences, or returns
            no tensor, and `output` does not say where one is.
        NonDeterministicError: fn gives two different outputs for the same x.

    Example:
        >>> import torch
        >>> from posembed import check_equivariance
        >>> x = torch.randn(2, 5, 16, generator=torch.Generator().manual_seed(0))
        >>> check_equivariance(torch.relu, x).verdict
        'equivariant'
        >>> check_equivariance(lambda x: x.mean(dim=1), x).verdict
        'invariant'
        >>> check_equivariance(lambda x: x.cumsum(dim=1), x).verdict
        'neither'
    """
    seq_dim = _checked_axis(x, seq_dim)
    along = dict(along or {})
    places = _places(x, along, seq_dim)
    settings = (seq_dim, output, places, n_permutations, seed)
    report, worst = _compared(fn, x, along, *settings, tolerance)
    # Between the rounding of one operation and ten times the tolerance it may be either; in half precision an effect
    # may be smaller than the rounding of one operation.
    rounding = next((torch.finfo(dtype).eps for dtype, t in TOLERANCES.items() if t == report.tolerance), math.inf)
    rounding = rounding if math.isinf(rounding) else min(rounding, torch.finfo(torch.float32).eps)
    doubtful = rounding < report.max_error <= min(10 * report.tolerance, 0.1)
    if tolerance is None and worst is not None and doubtful:
        report = replace(report, **_second_look(fn, x, along, settings, report, worst))
    if report.verdict != "neither" and _table_unread(fn, x, along, output):
        unread = "its position table takes no part when vectors are given; give ids"
        report = replace(report, remark="; ".join(filter(None, (report.remark, unread))))
    if len(places) < (n_tokens := x.shape[seq_dim]):
        moved = f"{len(places)} of {n_tokens} places moved, the others are padding in some text"
        report = replace(report, remark="; ".join(filter(None, (report.remark, moved))))
    return report


def _compared(
    fn: Any,
    x: Tensor,
    along: Mapping[str, Tensor],
    seq_dim: int,
    output: Any,
    places: Int[Tensor, " moving"],
    n_permutations: int,
    seed: int,
    tolerance: float | None,
) -> tuple[EquivarianceReport, Counterexample | None]:
    """The report, and the entry that lies furthest from the relation that it names."""
    run = _runner(fn, output, along)
    with eval_mode(_module_of(fn)):
        first = run(x)
        has_sequence = _has_sequence_axis(x, first, seq_dim)
        tolerance = _default_tolerance(fn, x, first) if tolerance is None else float(tolerance)
        reference = _numbers(first)
        _check_finite(reference, "fn(x)")
        _check_repeatable(run, x, reference, tolerance)
        comparison = _Comparison(reference, seq_dim if has_sequence else None)
        for permutation in _permutations(x, seq_dim, places, n_permutations, seed):
            moved = {name: _moved(each, seq_dim, permutation) for name, each in along.items()}
            permuted = _numbers(_runner(fn, output, moved)(_moved(x, seq_dim, permutation)))
            _check_finite(permuted, "fn of the permuted x")
            comparison.add(permutation, permuted)
        # Again at the end: a function that drifts or keeps a state would pass for one that breaks the order.
        _check_repeatable(run, x, reference, tolerance)
        report, worst = comparison.report(tolerance)
        if report.verdict == "equivariant":
            report = replace(report, token_by_token=_token_by_token(run, x, reference, seq_dim, tolerance))
    if report.verdict == "neither" and not has_sequence:
        _check_no_sequence_elsewhere(x, reference, seq_dim)
    return report, worst


def _token_by_token(
    run: Callable[[Tensor], Tensor], x: Tensor, reference: Tensor, seq_dim: int, tolerance: float
) -> bool:
    """Whether a token's output stays as it was when all other tokens become copies of it; some eight are tried."""
    # The same operations on the same numbers round alike in the same memory layout. So a few units of float32 are
    # enough in narrow formats too, whose own would hide the attention of a small model.
    tolerance = min(tolerance, 4 * torch.finfo(torch.float32).eps)
    n_tokens = x.shape[seq_dim]
    for place in range(0, n_tokens, -(-n_tokens // 8)):
        alone = _numbers(run(torch.empty_like(x).copy_(x.narrow(seq_dim, place, 1))))
        change = _distance(alone, reference).narrow(seq_dim, place, 1) if alone.shape == reference.shape else None
        # Not "above": a function that gives NaN for equal tokens depends on the others too.
        if change is None or not _largest(change) <= tolerance * _largest(reference):
            return False
    return True


def _second_look(
    fn: Any,
    x: Tensor,
    along: Mapping[str, Tensor],
    settings: tuple[int, Any, Tensor, int, int],
    report: EquivarianceReport,
    worst: Counterexample,
) -> dict[str, Any]:
    """What changes in a report whose error may be rounding or a small effect, after a look at a wider copy."""
    doubt, module, failed = "that may be rounding or a small effect", _module_of(fn), ""
    if report.tolerance == TOLERANCES[torch.float64]:
        return {}
    if module is None:
        advice = (
            "a function cannot be looked at again: give the module itself, and with along= what else it is given, or "
            "compute in float64"
        )
        return {"remark": f"{doubt}, and {advice}"}
    if sum(tensor.numel() for tensor in (*module.parameters(), *module.buffers())) > LARGEST_COPY:
        return {"remark": f"{doubt}, and the model is too large for a wider copy"}
    # Some kernels, such as those of mixtures of experts, have no float64.
    for dtype in (torch.float64, torch.float32)[: 1 + (report.tolerance > TOLERANCES[torch.float32])]:
        name = str(dtype).removeprefix("torch.")
        try:
            wide, owner = copy.deepcopy((fn, module))
            owner.to(dtype)
            given = {name: _in(each, dtype) for name, each in along.items()}
            again, there = _compared(wide, _in(x, dtype), given, *settings, None)
        except (RuntimeError, MemoryError, ValueError, TypeError) as error:
            failed = failed or f"a copy in {name} does not run ({str(error).splitlines()[0]:.200})"
            continue
        # Parts may stay in float32, whose rounding is larger than float64 is trusted with.
        if again.verdict != "neither" or again.max_error > TOLERANCES[torch.float32]:
            return {**vars(again), "remark": f"decided in {name}"}
        # Rounding there is another number, and an effect is the same one.
        if there and _same_effect(there, worst):
            seen = {"verdict": "neither", "counterexample": there, "token_by_token": False}
            return {**seen, "remark": f"an effect and not rounding: in {name} the same entry is furthest off"}
        failed = failed or f"parts of a copy may not compute in {name}"
    return {"remark": f"{doubt}, and {failed}"}


def _same_effect(one: Counterexample, other: Counterexample) -> bool:
    """Whether both name one entry, and it is off by about as much."""
    off, by = one.actual - one.expected, other.actual - other.expected
    same = (one.permutation, one.index) == (other.permutation, other.index)
    return same and abs(off - by) <= 0.5 * abs(by)


def _table_unread(fn: Any, x: Tensor, along: Mapping[str, Tensor], output: Any) -> bool:
    """Whether a transformers model that is given vectors has a position table and does not look at it."""
    if _argument_name(fn, x) != "inputs_embeds":
        return False
    try:
        table = find_position_rows(fn).rows
    except PositionTableError:
        return False
    with eval_mode(fn):
        return not reads(table, lambda: _runner(fn, output, along)(x))


class _Comparison:
    """Keeps the largest deviation from each of the two relations, and where it was."""

    def __init__(self, reference: Tensor, seq_dim: int | None):
        self.reference, self.seq_dim = reference, seq_dim
        self.scale = _largest(reference)
        self.count = 0
        self.worst: dict[str, tuple[float, Counterexample | None]] = {"invariant": (0.0, None)}
        if seq_dim is not None:
            self.worst["equivariant"] = (0.0, None)

    def add(self, permutation: Int[Tensor, " seq"], permuted: Tensor) -> None:
        if permuted.shape != self.reference.shape:
            raise NonDeterministicError(
                f"fn returned shape {tuple(permuted.shape)} for a permuted input and {tuple(self.reference.shape)} "
                "before; the output's shape must not depend on the order"
            )
        self.count += 1
        self.scale = max(self.scale, _largest(permuted))
        for relation in self.worst:
            expected = self.reference
            if relation == "equivariant":
                expected = expected.index_select(cast(int, self.seq_dim), permutation)
            difference = _distance(permuted, expected)
            error, flat = float(difference.max()), int(difference.argmax())
            if error > self.worst[relation][0]:
                index = tuple(int(i) for i in torch.unravel_index(torch.tensor(flat), difference.shape))
                values = expected[index].item(), permuted[index].item()
                self.worst[relation] = error, Counterexample(tuple(permutation.tolist()), index, *values)

    def report(self, tolerance: float) -> tuple[EquivarianceReport, Counterexample | None]:
        errors = {relation: error / (self.scale or 1.0) for relation, (error, _) in self.worst.items()}
        # Invariance first: an output that ignores the order may satisfy both relations.
        kept = [relation for relation in ("invariant", "equivariant") if errors.get(relation, math.inf) <= tolerance]
        verdict = cast(Verdict, kept[0] if kept else "neither")
        relation = verdict if kept else next(r for r in ("equivariant", "invariant") if r in errors)
        worst = self.worst[relation][1]
        report = EquivarianceReport(
            verdict=verdict,
            max_error=errors[relation],
            equivariance_error=errors.get("equivariant"),
            invariance_error=errors["invariant"],
            tolerance=tolerance,
            n_permutations=self.count,
            counterexample=None if kept else worst,
        )
        return report, worst


def _checked_axis(x: Tensor, seq_dim: int | None) -> int:
    """The axis of the tokens, counted from the first, of an x that can tell something."""
    if seq_dim is None and x.ndim == 2 and (x.is_floating_point() or x.is_complex()):
        raise EquivarianceInputError(
            f"x of shape {tuple(x.shape)} may hold tokens on either axis; say which with seq_dim=0 or seq_dim=1"
        )
    seq_dim = 1 if seq_dim is None else seq_dim
    if not -x.ndim <= seq_dim < x.ndim:
        raise EquivarianceInputError(
            f"x of shape {tuple(x.shape)} has no axis {seq_dim}; name the axis of the tokens with seq_dim="
        )
    _check_finite(x, "x")
    if x.numel() == 0 or bool((x == x.narrow(seq_dim, 0, 1)).all()):
        raise EquivarianceInputError(
            f"x of shape {tuple(x.shape)} has less than two different tokens, so no permutation changes it; give more"
        )
    return seq_dim % x.ndim


def _check_finite(tensor: Tensor, name: str) -> None:
    if not bool(torch.isfinite(tensor).all()):
        raise EquivarianceInputError(
            f"{name} holds NaN or infinity, with which nothing can be compared; mend that first"
        )


def _has_sequence_axis(x: Tensor, out: Tensor, seq_dim: int) -> bool:
    """Whether the output still has the sequence: at the same place, in the same rows of the batch.

    Axes between the two, such as channels, may have another length. An output with fewer axes than its tokens need is a
    pooled one, unless it holds the tokens of all rows on one axis. Integer ids lack the feature axis that their
    embeddings have, so a floating-point output of theirs is expected to have one more.
    """
    if out.numel() == 0:
        raise EquivarianceInputError(f"fn returned an empty tensor of shape {tuple(out.shape)}; choose another output=")
    if out.shape[: seq_dim + 1] == x.shape[: seq_dim + 1]:
        return True
    if seq_dim > 1 and out.ndim == x.ndim and all(out.shape[axis] == x.shape[axis] for axis in (0, seq_dim)):
        return True
    ids_embedded = not (x.is_floating_point() or x.is_complex()) and out.is_floating_point()
    n_tokens = math.prod(x.shape[: seq_dim + 1])
    flattened = seq_dim > 0 and out.ndim > 0 and out.shape[0] == n_tokens != x.shape[0]
    if out.ndim < x.ndim + ids_embedded and not flattened:
        return False
    longer = out.ndim > seq_dim and out.shape[seq_dim] > x.shape[seq_dim]
    part = "take the part that belongs to the tokens with output=, for example output=lambda y: y[:, 1:]; " * longer
    raise EquivarianceInputError(
        f"x has {x.shape[seq_dim]} tokens on axis {seq_dim}, but the output has shape {tuple(out.shape)}; {part}"
        "if it belongs to none of them, as latents do, make it one vector: output=lambda y: y.flatten(1)"
    )


def _check_no_sequence_elsewhere(x: Tensor, out: Tensor, seq_dim: int) -> None:
    """A pooled output that changes with the order is "neither", but not one that has the tokens on another axis."""
    # Leading axes that x has too, such as a batch as large as the sequence is long, are not meant.
    own = out.shape[seq_dim:] if out.shape[:seq_dim] == x.shape[:seq_dim] else out.shape[1:]
    if x.shape[seq_dim] in own:
        raise EquivarianceInputError(
            f"x has {x.shape[seq_dim]} tokens on axis {seq_dim}, and the output of shape {tuple(out.shape)} may have "
            "them on another; move them with output=, or choose a part with output= if that axis holds no tokens"
        )


def _default_tolerance(fn: Any, x: Tensor, out: Tensor) -> float:
    """That of the coarsest format on the way: a bfloat16 model may well hand out float32."""
    module = _module_of(fn)
    dtypes = {x.dtype, out.dtype, *(parameter.dtype for parameter in (module.parameters() if module else ()))}
    if torch.is_autocast_enabled(x.device.type):
        dtypes.add(torch.get_autocast_dtype(x.device.type))
    real = [dtype.to_real() for dtype in dtypes if dtype.is_floating_point or dtype.is_complex]
    # Formats of eight bits and less have no measured entry: twice their resolution.
    return max((TOLERANCES.get(dtype, 2 * torch.finfo(dtype).eps) for dtype in real), default=0.0)


def _check_repeatable(run: Callable[[Tensor], Tensor], x: Tensor, reference: Tensor, tolerance: float) -> None:
    again = _numbers(run(x))
    if again.shape == reference.shape and _largest(_distance(again, reference)) <= tolerance * _largest(reference):
        return
    raise NonDeterministicError(
        "fn gave two different outputs for the same x; switch dropout off (model.eval()) and remove any state it keeps"
    )


def _largest(tensor: Tensor) -> float:
    return float(tensor.double().abs().max())


def _places(x: Tensor, along: Mapping[str, Tensor], seq_dim: int) -> Int[Tensor, " moving"]:
    """The places whose tokens move: all but those of padding, where two of them at least differ."""
    stays = torch.zeros(x.shape[seq_dim], dtype=torch.bool)
    for name, each in along.items():
        if each.ndim <= seq_dim or each.shape[seq_dim] != len(stays):
            raise EquivarianceInputError(
                f"along has {name} of shape {tuple(each.shape)}, without the {len(stays)} tokens on axis {seq_dim}"
            )
        if name == "attention_mask" or name.endswith("key_padding_mask"):
            if name == "attention_mask" and not bool(((each == 0) | (each == 1)).all()):
                raise EquivarianceInputError(
                    f"{name} holds other numbers than 0 and 1, so what is padding is not known"
                )
            hidden = (each == 0) if name == "attention_mask" else (each != 0)
            stays |= hidden.movedim(seq_dim, 0).flatten(1).any(1).cpu()
    places = (~stays).nonzero().flatten()
    words = _moved(x, seq_dim, places)
    if not len(places) or bool((words == words.narrow(seq_dim, 0, 1)).all()):
        raise EquivarianceInputError("there are less than two different tokens beside padding; give more")
    return places


def _moved(tensor: Tensor, seq_dim: int, order: Tensor) -> Tensor:
    return tensor.index_select(seq_dim, order.to(tensor.device))


def _in(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    return tensor.to(dtype) if tensor.is_floating_point() else tensor


def _permutations(
    x: Tensor, seq_dim: int, places: Int[Tensor, " moving"], count: int, seed: int
) -> Iterator[Int[Tensor, " seq"]]:
    """Yield orders of the tokens at some places that change x: all of them where there are few, else random ones."""
    n_tokens = len(places)
    # Of three tokens a few random orders may all leave one in place, so their five orders are always tried.
    few = n_tokens <= 3 or (n_tokens <= 8 and math.factorial(n_tokens) - 1 <= count)
    orders = map(torch.tensor, itertools.permutations(range(n_tokens))) if few else _random_orders(n_tokens, seed)
    whole = torch.arange(x.shape[seq_dim])
    orders = (whole.scatter(0, places, places[order]) for order in orders)
    changing = (order for order in orders if not torch.equal(_moved(x, seq_dim, order), x))
    return changing if few else itertools.islice(changing, count)


def _random_orders(n_tokens: int, seed: int) -> Iterator[Int[Tensor, " seq"]]:
    """Draw orders without end, those first that move every token and are no shift.

    So no position is missed by chance, and no function of neighbourhoods, which shifts keep, passes for one of sets.
    """
    generator = torch.Generator().manual_seed(seed)
    places = torch.arange(n_tokens)
    searching = True
    while True:
        order = torch.randperm(n_tokens, generator=generator)
        steps = (order - places) % n_tokens
        if searching and (bool((steps == 0).any()) or bool((steps == steps[0]).all())):
            continue
        searching = False
        yield order


def _runner(fn: Callable[..., Any], output: Any, along: Mapping[str, Tensor]) -> Callable[[Tensor], Tensor]:
    """A function of x alone whose result is a tensor of its own."""

    def run(x: Tensor) -> Tensor:
        # Copies on both sides: fn may write into its input, or hand out the same buffer every time.
        given, name = x.detach().clone(), _argument_name(fn, x)
        more = {its: each.clone() for its, each in along.items()}
        return _pick(fn(given, **more) if name is None else fn(**{name: given}, **more), output).detach().clone()

    return run


def _numbers(tensor: Tensor) -> Tensor:
    """The same values in the widest format of their kind, on the CPU; of complex ones both parts, on a last axis."""
    tensor = (torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor).cpu()
    return tensor.to(torch.float64 if tensor.is_floating_point() else torch.int64)


def _distance(actual: Tensor, expected: Tensor) -> Tensor:
    """How far apart, entry by entry. Large integers that round to one number are still one apart."""
    rounded = (actual.double() - expected.double()).abs()
    return torch.where(rounded.eq(0) & actual.ne(expected), 1.0, rounded)


def _argument_name(fn: Any, x: Tensor) -> str | None:
    """What a transformers model calls its tokens; None for anything else."""
    # Known by its interface, so that transformers need not be imported to check a plain function.
    if not (isinstance(fn, nn.Module) and hasattr(fn, "config") and hasattr(fn, "get_input_embeddings")):
        return None
    if "decoder_input_ids" in inspect.signature(fn.forward).parameters:
        raise EquivarianceInputError(
            f"{type(fn).__name__} reads two sequences; give one of its parts, such as model.get_encoder(), or a "
            "function of the sequence that is meant, in which the other stays the same"
        )
    return "inputs_embeds" if x.is_floating_point() else "input_ids"


def _pick(result: Any, output: Any) -> Tensor:
    chosen = _chosen(result, output)
    if not isinstance(chosen, Tensor):
        names = f" with {', '.join(map(str, result))}" if isinstance(result, Mapping) else ""
        raise EquivarianceInputError(
            f"fn returned a {type(result).__name__}{names}; say with output= which tensor of it is meant"
        )
    return chosen


def _chosen(result: Any, output: Any) -> Any:
    if callable(output):
        return output(result)
    if isinstance(result, Mapping) and output is None:
        return next((result[name] for name in ("last_hidden_state", "logits") if name in result), None)
    if isinstance(output, str) and not isinstance(result, Mapping):
        return getattr(result, output)
    return result if output is None else result[output]


def _module_of(fn: Any) -> nn.Module | None:
    """The module itself, or the one that a bound method belongs to."""
    owner = fn if isinstance(fn, nn.Module) else getattr(fn, "__self__", None)
    return owner if isinstance(owner, nn.Module) else None
