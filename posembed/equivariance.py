"""Does a function see the order of its tokens? A numeric check with a counterexample."""

from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from numbers import Real
from types import FunctionType
from typing import Any, Literal, cast

import torch
from jaxtyping import Int, Shaped
from torch import Tensor, nn

from .checks import check_whole
from .dense_tensors import why_not_ordinary
from .errors import EquivarianceInputError, NonDeterministicError, PositionTableError, shown
from .inference import CALLED_WRONGLY, evaluating
from .precision_retry import ComputedIn, in_format, reads, widened
from .progress import one_line
from .seeds import checked_seed
from .tables import find_position_rows

Verdict = Literal["equivariant", "invariant", "neither"]

# The rounding a deep network may add, in units of its largest output. The book's six-layer encoder without positions
# shows 5e-15, 3e-6, 3e-3 and 3e-2 at up to 512 tokens, freshly initialised ones of 24 layers up to 2e-6 in float32. The
# narrow formats leave room for two to four times that and no more, if a real effect is still to be seen. Integers and
# booleans have no rounding.
TOLERANCES = {torch.float64: 1e-12, torch.float32: 1e-5, torch.float16: 1e-2, torch.bfloat16: 6e-2}


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
            table takes no part. Mostly empty.

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


def check_equivariance(
    fn: Callable[..., Any],
    x: Shaped[Tensor, "..."],
    *,
    seq_dim: int | None = None,
    output: str | int | Callable[[Any], Tensor] | None = None,
    n_permutations: int = 8,
    seed: int = 0,
    tolerance: float | None = None,
) -> EquivarianceReport:
    """Compare fn(Px) with P fn(x) and with fn(x), over random permutations P of the tokens of x.

    A function is permutation equivariant when f(Px) = P f(x) and permutation invariant when f(Px) = f(x)
    (Zaheer et al. 2017, Deep Sets, section 2). An output that does both, a constant one for example, ignores the
    order and is called invariant. Modules run in eval mode and without gradients and are put back as they were.

    An effect of the order below the tolerance looks like rounding, and rounding that a very deep or badly conditioned
    model amplifies beyond it looks like an effect. So where an error lies above the rounding of one operation in
    float32 and below ten times the default tolerance, a module or its bound method is copied and checked again in
    float64, or in float32 where a narrower one has no float64; `remark` says so, or why that was not possible. Other
    functions cannot be copied: compute in float64, and take large constants off the output.

    Args:
        fn: a function, a module, or a transformers model, which gets x as ``inputs_embeds`` when x is floating point
            and as ``input_ids`` when it is integer.
        x: the input, "... seq ...", of any dtype on any device. It is never written to.
        seq_dim: the axis of x (and of the output) that holds the sequence; by default 1. Floating-point x with two axes
            may be "batch seq" or "seq features", so there it must be said.
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
        EquivarianceInputError: x is not a tensor, is empty, has one token, has only equal tokens, or lacks the axis.
        EquivarianceInputError: x or an output holds NaN or infinity.
        NonDeterministicError: fn gives two different outputs for the same x.
        EquivarianceInputError: fn changes the length of the sequence.
        EquivarianceInputError: fn cannot be called, or not with x alone.
        EquivarianceInputError: fn returns no tensor, and `output` does not say where one is.

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
    _check_numbers(n_permutations, tolerance)
    _check_callable(fn)
    settings = (seq_dim, output, n_permutations, checked_seed(seed, EquivarianceInputError))
    report, worst = _compared(fn, x, *settings, tolerance)
    # Between the rounding of one operation and ten times the tolerance it may be either; in half precision an effect
    # may be smaller than the rounding of one operation.
    rounding = next((torch.finfo(dtype).eps for dtype, t in TOLERANCES.items() if t == report.tolerance), math.inf)
    rounding = rounding if math.isinf(rounding) else min(rounding, torch.finfo(torch.float32).eps)
    doubtful = rounding < report.max_error <= min(10 * report.tolerance, 0.1)
    if tolerance is None and worst is not None and doubtful:
        report = replace(report, **_second_look(fn, x, settings, report, worst))
    if report.verdict != "neither" and _table_unread(fn, x):
        unread = "its position table takes no part when vectors are given; give ids"
        report = replace(report, remark="; ".join(filter(None, (report.remark, unread))))
    return report


def _compared(
    fn: Any, x: Tensor, seq_dim: int, output: Any, n_permutations: int, seed: int, tolerance: float | None
) -> tuple[EquivarianceReport, Counterexample | None]:
    """The report, and the entry that lies furthest from the relation that it names."""
    run = _runner(fn, output)
    with evaluating(_module_of(fn)):
        first = run(x)
        has_sequence = _has_sequence_axis(x, first, seq_dim)
        tolerance = _default_tolerance(fn, x, first) if tolerance is None else float(tolerance)
        reference = _numbers(first)
        _check_finite(reference, "fn(x)")
        _check_repeatable(run, x, reference, tolerance)
        comparison = _Comparison(reference, seq_dim if has_sequence else None)
        for permutation in _permutations(x, seq_dim, n_permutations, seed):
            permuted = _numbers(run(x.index_select(seq_dim, permutation.to(x.device))))
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
    fn: Any, x: Tensor, settings: tuple[int, Any, int, int], report: EquivarianceReport, worst: Counterexample
) -> dict[str, Any]:
    """What changes in a report whose error may be rounding or a small effect, after a look at a wider copy."""
    doubt, module, failed = "that may be rounding or a small effect", _module_of(fn), []
    if module is None:
        advice = f"{doubt}, and a function cannot be looked at again: give the module itself, or compute in float64"
        return {} if report.tolerance == TOLERANCES[torch.float64] else {"remark": advice}
    # Some kernels, such as those of mixtures of experts, have no float64.
    for dtype in (torch.float64, torch.float32)[: 1 + (report.tolerance > TOLERANCES[torch.float32])]:
        wide, name = in_format(fn, module, dtype), str(dtype).removeprefix("torch.")
        if wide is None:
            failed.append(f"no copy in {name} could be made")
            continue
        try:
            with ComputedIn(cast(nn.Module, _module_of(wide))) as computed:
                again, there = _compared(wide, widened(x, dtype), *settings, None)
        except (RuntimeError, MemoryError, ValueError, TypeError) as error:
            reason = str(error.__cause__ or error).splitlines()[0]
            failed.append(f"a copy in {name} does not run ({reason})")
            continue
        if computed.formats <= {dtype, torch.float64}:
            return {**vars(again), "remark": f"decided in {name}"}
        # Parts stay in another format. Rounding there is another number in other company, and an effect is the same.
        if there and (there.permutation, there.index) == (worst.permutation, worst.index):
            seen = {"verdict": "neither", "counterexample": there, "token_by_token": False}
            return {**seen, "remark": f"an effect and not rounding: in {name} the same entry is furthest off"}
        failed.append(f"parts of it do not compute in {name}")
    return {"remark": f"{doubt}, and {failed[0]}"}


def _table_unread(fn: Any, x: Tensor) -> bool:
    """Whether a transformers model that is given vectors has a position table and does not look at it."""
    if _argument_name(fn, x) != "inputs_embeds":
        return False
    try:
        table = find_position_rows(fn).rows
    except PositionTableError:
        return False
    with evaluating(fn):
        return not reads(fn, table, lambda: _called(fn, x.detach().clone()))


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


def _checked_axis(x: Any, seq_dim: int | None) -> int:
    if not isinstance(x, Tensor):
        raise EquivarianceInputError(f"x must be a tensor, but a {type(x).__name__} was given")
    _check_ordinary(x, "x")
    if seq_dim is None and x.ndim == 2 and (x.is_floating_point() or x.is_complex()):
        raise EquivarianceInputError(
            f"x of shape {tuple(x.shape)} may hold tokens on either axis; say which with seq_dim=0 or seq_dim=1"
        )
    seq_dim = 1 if seq_dim is None else seq_dim
    if not isinstance(seq_dim, int) or isinstance(seq_dim, bool) or not -x.ndim <= seq_dim < x.ndim:
        raise EquivarianceInputError(
            f"x of shape {tuple(x.shape)} has no axis {shown(seq_dim)}; name the axis of the tokens with seq_dim="
        )
    seq_dim %= x.ndim
    n_tokens = x.shape[seq_dim]
    if x.numel() == 0:
        raise EquivarianceInputError(f"x of shape {tuple(x.shape)} is empty; give it at least two tokens")
    if n_tokens == 1:
        raise EquivarianceInputError("x has one token, and one token has no other order; give it at least two")
    _check_finite(x, "x")
    if bool((x == x.narrow(seq_dim, 0, 1)).all()):
        raise EquivarianceInputError("all tokens of x are equal, so no permutation changes it; give it different ones")
    return seq_dim


def _check_numbers(n_permutations: int, tolerance: float | None) -> None:
    check_whole("n_permutations", n_permutations, EquivarianceInputError)
    is_number = isinstance(tolerance, Real) and not isinstance(tolerance, bool)
    if tolerance is not None and not (is_number and 0 <= tolerance < math.inf):
        raise EquivarianceInputError(f"tolerance is {shown(tolerance)}; it must be zero or a positive number")


def _check_callable(fn: Any) -> None:
    """Refuse what cannot be called with one tensor, as far as it can be known beforehand."""
    if isinstance(fn, type) or not callable(fn):
        said = f"the class {fn.__name__}" if isinstance(fn, type) else f"a {type(fn).__name__}"
        raise EquivarianceInputError(f"fn is {said}; give a function of x, a module or a model, made or loaded before")
    if isinstance(fn, FunctionType) and not inspect.signature(fn).parameters:
        raise EquivarianceInputError(f"{fn.__name__} takes no argument; give a function of x")
    if len(needed := _needed(fn)) > 1:
        again = ", ".join("x" for _ in needed)
        raise EquivarianceInputError(
            f"{getattr(fn, '__name__', type(fn).__name__)} needs {', '.join(needed)}, and x is one input; give a "
            f"function of x, such as lambda x: fn({again}), or one in which the others stay the same"
        )


def _needed(fn: Any) -> list[str]:
    """The arguments that a function or a module cannot be called without, as far as it tells."""
    try:
        parameters = inspect.signature(fn.forward if isinstance(fn, nn.Module) else fn).parameters.values()
    except (TypeError, ValueError):  # some functions written in C do not
        return []
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [each.name for each in parameters if each.kind in kinds and each.default is each.empty]


def _check_ordinary(tensor: Tensor, name: str) -> None:
    if why := why_not_ordinary(tensor):
        raise EquivarianceInputError(f"{name} is {why}; give an ordinary tensor, such as .to_dense() or .float() make")


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
        raise EquivarianceInputError(
            f"fn returned an empty tensor of shape {tuple(out.shape)}, in which nothing can be compared"
        )
    if out.shape[: seq_dim + 1] == x.shape[: seq_dim + 1]:
        return True
    if seq_dim > 1 and out.ndim == x.ndim and all(out.shape[axis] == x.shape[axis] for axis in (0, seq_dim)):
        return True
    ids_embedded = not (x.is_floating_point() or x.is_complex()) and out.is_floating_point()
    n_tokens = math.prod(x.shape[: seq_dim + 1])
    flattened = seq_dim > 0 and out.ndim > 0 and out.shape[0] == n_tokens != x.shape[0]
    if out.ndim < x.ndim + ids_embedded and not flattened:
        return False
    raise EquivarianceInputError(
        f"x has {x.shape[seq_dim]} tokens on axis {seq_dim}, but the output has shape {tuple(out.shape)}; "
        "take the part that belongs to the tokens with output=, for example output=lambda y: y[:, 1:]"
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


def _permutations(x: Tensor, seq_dim: int, count: int, seed: int) -> Iterator[Int[Tensor, " seq"]]:
    """Yield orders that change x: all of them where there are few, else random ones."""
    n_tokens = x.shape[seq_dim]
    # Of three tokens a few random orders may all leave one in place, so their five orders are always tried.
    few = n_tokens <= 3 or (n_tokens <= 8 and math.factorial(n_tokens) - 1 <= count)
    orders = map(torch.tensor, itertools.permutations(range(n_tokens))) if few else _random_orders(n_tokens, seed)
    changing = (order for order in orders if not torch.equal(x.index_select(seq_dim, order.to(x.device)), x))
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


def _runner(fn: Callable[..., Any], output: Any) -> Callable[[Tensor], Tensor]:
    """A function of x alone whose result is a tensor of its own."""

    def run(x: Tensor) -> Tensor:
        # Copies on both sides: fn may write into its input, or hand out the same buffer every time.
        given = x.detach().clone()
        return _pick(_called(fn, given), output).detach().clone()

    return run


def _called(fn: Any, x: Tensor) -> Any:
    name = _argument_name(fn, x)
    try:
        return fn(x) if name is None else fn(**{name: x})
    except CALLED_WRONGLY as error:
        module, kind = _module_of(fn), type(fn).__name__
        own = next((each.dtype for each in module.parameters() if each.is_floating_point()), None) if module else None
        if x.is_floating_point() and own not in (None, x.dtype):
            raise EquivarianceInputError(f"x is of {x.dtype} and the module of {own}; give x.to({own})") from error
        if name is None and module is not None:
            given = f"x of shape {tuple(x.shape)} and {x.dtype}"
            raise EquivarianceInputError(f"{kind} cannot be called with {given} ({one_line(error):.200})") from error
        if name is None:
            raise
        if name not in (parameters := inspect.signature(fn.forward).parameters) and "input_ids" in parameters:
            # It took the vectors among its further arguments, and did not use them.
            such = "model.text_model and ids" if "pixel_values" in parameters and hasattr(fn, "text_model") else "ids"
            raise EquivarianceInputError(f"{kind} takes no inputs_embeds; give {such}") from error
        said = f"{kind} cannot be called with this x as {name} alone ({one_line(error):.200})"
        part = "one part of it" + ", such as model.text_model," * (hasattr(fn, "text_model") and name == "input_ids")
        raise EquivarianceInputError(f"{said}; give one that fits, {part} or a function of x") from error


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
    name = "inputs_embeds" if x.is_floating_point() else "input_ids"
    parameters = inspect.signature(fn.forward).parameters
    if "decoder_input_ids" in parameters:
        parts = {f"model.get_{part}()": getattr(fn, f"get_{part}", lambda: None)() for part in ("encoder", "decoder")}
        fitting = [f"one of its parts, such as {part}, or " for part, its in parts.items() if _reads(its, name)]
        raise EquivarianceInputError(
            f"{type(fn).__name__} reads two sequences; give {''.join(fitting[:1])}a function of the sequence that is "
            "meant, in which the other stays the same"
        )
    open_ended = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    if name in parameters or (open_ended and getattr(fn, "main_input_name", name) in ("input_ids", "inputs_embeds")):
        return name
    if "inputs" in parameters:  # a Perceiver's, of any kind
        return "inputs"
    encoders = [(path, each) for path, each in fn.named_modules() if path.rpartition(".")[2] == "encoder"]
    inner = [path for path, each in encoders if x.is_floating_point() and len(_needed(each)) == 1]
    such = f"such as lambda x: model.{inner[0]}(x)" if inner else "or of their vectors, which calls its layers"
    raise EquivarianceInputError(f"{type(fn).__name__} takes no {name}; give a function of its tokens instead, {such}")


def _reads(module: Any, name: str) -> bool:
    return isinstance(module, nn.Module) and name in inspect.signature(module.forward).parameters


def _pick(result: Any, output: Any) -> Tensor:
    try:
        chosen = _chosen(result, output)
        if isinstance(chosen, Tensor):
            _check_ordinary(chosen, "what fn returns")
    except (KeyError, IndexError, AttributeError, TypeError) as error:
        said = f"output={shown(output)} is not in what fn returned ({_contents(result)})"
        raise EquivarianceInputError(said) from error
    if not isinstance(chosen, Tensor):
        given = f"output={shown(output)} gave {_contents(chosen)}"
        said = f"fn returned {_contents(result)}" if output is None else given
        raise EquivarianceInputError(f"{said}; say with output= which tensor is meant")
    return chosen


def _chosen(result: Any, output: Any) -> Any:
    if callable(output):
        return output(result)
    if isinstance(result, Mapping) and output is None:
        return next((result[name] for name in ("last_hidden_state", "logits") if name in result), None)
    if isinstance(output, str) and not isinstance(result, Mapping):
        return getattr(result, output)
    return result if output is None else result[output]


def _contents(result: Any) -> str:
    parts = f" with {', '.join(map(str, result))}" if isinstance(result, Mapping) else ""
    return f"a {type(result).__name__}{f' of {len(result)}' if isinstance(result, tuple | list) else parts}"


def _module_of(fn: Any) -> nn.Module | None:
    """The module itself, or the one that a bound method belongs to."""
    owner = fn if isinstance(fn, nn.Module) else getattr(fn, "__self__", None)
    return owner if isinstance(owner, nn.Module) else None
