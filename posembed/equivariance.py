"""Does a function see the order of its tokens? A numeric check with a counterexample."""

from __future__ import annotations

import copy
import functools
import inspect
import itertools
import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

import torch
from jaxtyping import Int, Shaped
from torch import Tensor, nn

from .errors import EquivarianceInputError, NonDeterministicError
from .inference import eval_mode
from .public import Count, NotNegative, Seed, public

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
        # Of a small effect both numbers begin alike.
        return (
            f"permutation {list(self.permutation)}: output{list(self.index)} is {self.actual:.6g}, "
            f"expected {self.expected:.6g}, {abs(self.actual - self.expected):.2g} apart"
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
        remark: how an error between rounding and tolerance was decided, or that it was not; how many places moved,
            where a mask keeps some; where a function is no module, what it may hold fixed. Mostly empty.

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
    pairs: Collection[str] | None = None,
    n_permutations: Count = 8,
    seed: Seed = 0,
    tolerance: NotNegative | None = None,
) -> EquivarianceReport:
    """Compare fn(Px) with P fn(x) and with fn(x), over random permutations P of the tokens of x.

    A function is permutation equivariant when f(Px) = P f(x) and permutation invariant when f(Px) = f(x)
    (Zaheer et al. 2017, Deep Sets, section 2). An output that does both, a constant one for example, ignores the
    order and is called invariant. Modules, also those that a function names, run in eval mode and without gradients and
    are put back as they were; those that an object or a partial holds cannot be seen: call their ``eval()`` first.

    An effect of the order below the tolerance looks like rounding, and rounding that a very deep or badly conditioned
    model amplifies beyond it looks like an effect. So where an error lies above the rounding of one operation in
    float32 and below ten times the default tolerance, a module or its bound method is copied and checked again in
    float64; `remark` says so, or that this was not possible. Other functions cannot be copied: give the module itself,
    with `along` and `output` for what the function did, or compute in float64; take large constants off the output.

    Args:
        fn: a function, a module, or a transformers model, which gets x as ``inputs_embeds`` when x is floating point
            and as ``input_ids`` when it is integer. Some, such as ESM, add no positions to vectors: give ids.
        x: the input, "... seq ...", of any dtype on any device. It is never written to.
        seq_dim: the axis of x (and of the output) that holds the sequence; by default 1. Floating-point x with two axes
            may be "batch seq" or "seq features", so there it must be said.
        along: what fn is given beside x by these names and belongs to the tokens, with them on the same axis: a mask of
            padding, token types. It moves with them. Fixed inside a function it would stay where it is, and hide other
            tokens each time. Where it has two values, as a mask of any name has, only tokens with the same ones in all
            rows change places: words with words.
        pairs: which names in `along` belong to pairs of tokens, with tokens on the next axis too: a mask "batch query
            key", the edges of a graph. They move along both. To be said, ``pairs=()`` too, where the next axis is as
            long as the text.
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
    pairs = _checked_pairs(x, along, pairs, seq_dim)
    groups = _groups(x, {name: each for name, each in along.items() if name not in pairs}, seq_dim)
    settings = (seq_dim, output, groups, n_permutations, seed, pairs)
    report, worst = _compared(fn, x, along, *settings, tolerance)
    # Between the rounding of one operation and ten times the tolerance it may be either; in half precision an effect
    # may be smaller than the rounding of one operation.
    rounding = next((torch.finfo(dtype).eps for dtype, t in TOLERANCES.items() if t == report.tolerance), math.inf)
    doubtful = min(rounding, torch.finfo(torch.float32).eps) < report.max_error <= min(10 * report.tolerance, 0.1)
    if tolerance is None and rounding > torch.finfo(torch.float64).eps and doubtful and worst is not None:
        report = replace(report, **_second_look(fn, x, along, settings, worst))
    if report.verdict == "neither" and not (along or report.remark) and _module_of(fn) is None:
        fixed = "what belongs to tokens, such as a mask, stays where it is if fixed in the function; give it in along="
        report = replace(report, remark=fixed)
    if (n_moved := sum(map(len, groups))) < (n_tokens := x.shape[seq_dim]):
        moved = (
            f"{n_moved} of {n_tokens} places moved, the others hold padding, or what no other token has under a mask"
        )
        report = replace(report, remark="; ".join(filter(None, (report.remark, moved))))
    return report


def _compared(
    fn: Any,
    x: Tensor,
    along: Mapping[str, Tensor],
    seq_dim: int,
    output: Any,
    groups: list[Tensor],
    n_permutations: int,
    seed: int,
    pairs: frozenset[str],
    tolerance: float | None,
) -> tuple[EquivarianceReport, Counterexample | None]:
    """The report, and the entry that lies furthest from the relation that it names."""
    run = _runner(fn, output)
    with eval_mode(_modules_of(fn)):
        first = run(x, along)
        has_sequence = _has_sequence_axis(x, first, seq_dim)
        tolerance = _default_tolerance(fn, x, first) if tolerance is None else float(tolerance)
        reference = _numbers(first, "fn(x)")
        _check_repeatable(run, x, along, reference, tolerance)
        orders = _orders(x, seq_dim, groups, n_permutations, seed)
        scale, worst = _largest(reference), dict.fromkeys(("equivariant", "invariant")[not has_sequence :], _NOWHERE)
        for order in orders:
            moved = {name: _moved(each, seq_dim, order) for name, each in along.items()}
            moved |= {name: _moved(moved[name], seq_dim + 1, order) for name in pairs}
            permuted = _numbers(run(_moved(x, seq_dim, order), moved), "fn of the permuted x")
            scale = max(scale, _largest(permuted))
            for relation, furthest in worst.items():
                expected = _moved(reference, seq_dim, order) if relation == "equivariant" else reference
                worst[relation] = max(furthest, _deviation(order, expected, permuted), key=lambda found: found[0])
        # Again at the end: a function that drifts or keeps a state would pass for one that breaks the order.
        _check_repeatable(run, x, along, reference, tolerance)
        errors = {relation: error / (scale or 1.0) for relation, (error, _) in worst.items()}
        # Invariance first: an output that ignores the order may satisfy both relations.
        kept = [relation for relation in reversed(errors) if errors[relation] <= tolerance]
        relation = kept[0] if kept else next(iter(errors))
        report = EquivarianceReport(
            verdict=cast(Verdict, relation if kept else "neither"),
            max_error=errors[relation],
            equivariance_error=errors.get("equivariant"),
            invariance_error=errors["invariant"],
            tolerance=tolerance,
            n_permutations=len(orders),
            counterexample=None if kept else worst[relation][1],
            token_by_token=kept[:1] == ["equivariant"]
            and _token_by_token(run, x, along, reference, seq_dim, tolerance),
        )
    if report.verdict == "neither" and not has_sequence:
        _check_no_sequence_elsewhere(x, reference, seq_dim)
    return report, worst[relation][1]


_NOWHERE: tuple[float, Counterexample | None] = (0.0, None)


def _deviation(order: Int[Tensor, " seq"], expected: Tensor, actual: Tensor) -> tuple[float, Counterexample]:
    """How far apart two outputs are at most, and where."""
    if actual.shape != expected.shape:
        raise NonDeterministicError(
            f"fn returned shape {tuple(actual.shape)} for a permuted input and {tuple(expected.shape)} before; the "
            "output's shape must not depend on the order"
        )
    difference = _distance(actual, expected)
    index = tuple(int(i) for i in torch.unravel_index(difference.argmax(), difference.shape))
    values = expected[index].item(), actual[index].item()
    return float(difference.max()), Counterexample(tuple(order.tolist()), index, *values)


def _token_by_token(
    run: Callable[..., Tensor],
    x: Tensor,
    along: Mapping[str, Tensor],
    reference: Tensor,
    seq_dim: int,
    tolerance: float,
) -> bool:
    """Whether a token's output stays as it was when all other tokens become copies of it; some eight are tried."""
    # The same operations on the same numbers round alike in the same memory layout. So a few units of float32 are
    # enough in narrow formats too, whose own would hide the attention of a small model.
    tolerance = min(tolerance, 4 * torch.finfo(torch.float32).eps)
    n_tokens = x.shape[seq_dim]
    for place in range(0, n_tokens, -(-n_tokens // 8)):
        alone = _as_numbers(run(torch.empty_like(x).copy_(x.narrow(seq_dim, place, 1)), along))
        change = _distance(alone, reference).narrow(seq_dim, place, 1) if alone.shape == reference.shape else None
        # Not "above": a function that gives NaN for equal tokens depends on the others too.
        if change is None or not _largest(change) <= tolerance * _largest(reference):
            return False
    return True


def _second_look(
    fn: Any,
    x: Tensor,
    along: Mapping[str, Tensor],
    settings: tuple[int, Any, list[Tensor], int, int, frozenset[str]],
    worst: Counterexample,
) -> dict[str, Any]:
    """What changes in a report whose error may be rounding or a small effect, after a look at a copy in float64."""
    doubt = "that may be rounding or a small effect; compute in float64"
    if (module := _module_of(fn)) is None:
        return {"remark": f"{doubt}, or give the module itself, and with along= what else it is given"}
    try:
        wide, owner = copy.deepcopy((fn, module))
        owner.double()
        given = {name: _wide(each) for name, each in along.items()}
        again, there = _compared(wide, _wide(x), given, *settings, None)
    except (RuntimeError, MemoryError, ValueError, TypeError):  # some kernels have no float64
        return {"remark": doubt}
    # Parts may stay in float32, whose rounding is larger than float64 is trusted with.
    if again.verdict != "neither" or again.max_error > TOLERANCES[torch.float32]:
        return {**vars(again), "remark": "decided in float64"}
    # Rounding there is another number, and an effect is the same one.
    if there and _same_effect(there, worst):
        seen = {"verdict": "neither", "counterexample": there, "token_by_token": False}
        return {**seen, "remark": "an effect and not rounding: in float64 the same entry is furthest off"}
    return {"remark": doubt}


def _same_effect(one: Counterexample, other: Counterexample) -> bool:
    """Whether both name one entry, and it is off by about as much."""
    off, by = one.actual - one.expected, other.actual - other.expected
    same = (one.permutation, one.index) == (other.permutation, other.index)
    return same and abs(off - by) <= 0.5 * abs(by)


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
    _numbers(x, "x")
    return seq_dim % x.ndim


def _has_sequence_axis(x: Tensor, out: Tensor, seq_dim: int) -> bool:
    """Whether the output still has the sequence: at the same place, in the same rows of the batch.

    Axes between the two, such as channels, may have another length. An output with fewer axes than its tokens need is a
    pooled one, unless it holds the tokens of all rows on one axis. Integer ids lack the feature axis that their
    embeddings have, so a floating-point output of theirs is expected to have one more.
    """
    channels = seq_dim > 1 and out.ndim == x.ndim and all(out.shape[axis] == x.shape[axis] for axis in (0, seq_dim))
    if channels or out.shape[: seq_dim + 1] == x.shape[: seq_dim + 1]:
        return True
    ids_embedded = not (x.is_floating_point() or x.is_complex()) and out.is_floating_point()
    n_tokens = math.prod(x.shape[: seq_dim + 1])
    flattened = seq_dim > 0 and out.ndim > 0 and out.shape[0] == n_tokens != x.shape[0]
    if out.ndim < x.ndim + ids_embedded and not flattened:
        return False
    raise EquivarianceInputError(
        f"x has {x.shape[seq_dim]} tokens on axis {seq_dim}, but the output has shape {tuple(out.shape)}; take the "
        "part that belongs to the tokens with output=, for example output=lambda y: y[:, 1:]; if it belongs to "
        "none of them, as latents do, make it one vector: output=lambda y: y.flatten(1)"
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
    dtypes = {x.dtype, out.dtype, *(parameter.dtype for parameter in _modules_of(fn).parameters())}
    if torch.is_autocast_enabled(x.device.type):
        dtypes.add(torch.get_autocast_dtype(x.device.type))
    real = [dtype.to_real() for dtype in dtypes if dtype.is_floating_point or dtype.is_complex]
    # Formats of eight bits and less have no measured entry: twice their resolution.
    return max((TOLERANCES.get(dtype, 2 * torch.finfo(dtype).eps) for dtype in real), default=0.0)


def _check_repeatable(
    run: Callable[..., Tensor], x: Tensor, along: Mapping[str, Tensor], reference: Tensor, tolerance: float
) -> None:
    again = _as_numbers(run(x, along))
    if again.shape == reference.shape and _largest(_distance(again, reference)) <= tolerance * _largest(reference):
        return
    raise NonDeterministicError(
        "fn gave two different outputs for the same x; switch dropout off (model.eval()) and remove any state it keeps"
    )


def _largest(tensor: Tensor) -> float:
    return float(tensor.double().abs().max())


def _checked_pairs(
    x: Tensor, along: Mapping[str, Tensor], pairs: Collection[str] | None, seq_dim: int
) -> frozenset[str]:
    """The names of what belongs to pairs of tokens; all of `along` has the tokens where it is moved."""
    n_tokens, found = x.shape[seq_dim], frozenset(pairs or ())
    if unknown := found - {*along}:
        raise EquivarianceInputError(f"pairs names {', '.join(sorted(unknown))}, which along does not have")
    for name, each in along.items():
        axes = (seq_dim, seq_dim + 1) if name in found else (seq_dim,)
        for axis in axes:
            if each.ndim <= axis or each.shape[axis] != n_tokens:
                raise EquivarianceInputError(
                    f"along has {name} of shape {tuple(each.shape)}, without the {n_tokens} tokens on axis {axis}"
                )
        # A batch as large as the text is long is no axis of tokens.
        sizes = [0 if size == of_x else size for size, of_x in zip(each.shape, x.shape[:seq_dim], strict=False)]
        if pairs is None and n_tokens in (*sizes, *each.shape[seq_dim + 1 :]):
            raise EquivarianceInputError(
                f"along has {name} of shape {tuple(each.shape)}, which may hold the tokens on a second axis; if so, "
                f"give it with them on axes {seq_dim} and {seq_dim + 1} and say pairs=[{name!r}], and else pairs=()"
            )
    return found


def _groups(x: Tensor, along: Mapping[str, Tensor], seq_dim: int) -> list[Tensor]:
    """The places whose tokens may be exchanged: alike under each mask, whichever of its values means padding."""
    n_tokens = x.shape[seq_dim]
    masks = [torch.zeros(n_tokens, 1)]
    for each in along.values():
        if len(each.unique()) == 2:
            masks.append((each == each.flatten()[0]).movedim(seq_dim, 0).reshape(n_tokens, -1).float().cpu())
    kinds = torch.cat(masks, 1).unique(dim=0, return_inverse=True)[1]
    tokens = ((kinds == kind).nonzero().flatten() for kind in kinds.unique())
    groups = [
        places for places in tokens if not (x == _moved(x, seq_dim, places[:1])).index_select(seq_dim, places).all()
    ]
    if not groups:
        raise EquivarianceInputError(
            f"x of shape {tuple(x.shape)} has less than two different tokens beside padding, so no permutation changes "
            "it; give more"
        )
    return groups


def _moved(tensor: Tensor, seq_dim: int, order: Tensor) -> Tensor:
    return tensor.index_select(seq_dim, order.to(tensor.device))


def _wide(tensor: Tensor) -> Tensor:
    return tensor.double() if tensor.is_floating_point() else tensor


def _orders(x: Tensor, seq_dim: int, groups: list[Tensor], count: int, seed: int) -> list[Int[Tensor, " seq"]]:
    """Orders of the tokens that change x in each group."""
    several = [list(_permutations(x, seq_dim, places, count, seed)) for places in groups]
    orders = zip(*(itertools.cycle(each) for each in several), strict=True)
    # They move different places, so one may follow the other.
    return [functools.reduce(torch.take, each) for each in itertools.islice(orders, max(map(len, several)))]


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
    """Draw orders without end, first one that moves every token and is no shift.

    So no position is missed by chance, and no function of neighbourhoods, which shifts keep, passes for one of sets.
    """
    generator = torch.Generator().manual_seed(seed)
    orders = (torch.randperm(n_tokens, generator=generator) for _ in itertools.count())
    yield next(filter(_moves_all_apart, orders))
    yield from orders


def _moves_all_apart(order: Int[Tensor, " seq"]) -> bool:
    steps = (order - torch.arange(len(order))) % len(order)
    return bool(0 < steps.min() < steps.max())


def _runner(fn: Callable[..., Any], output: Any) -> Callable[[Tensor, Mapping[str, Tensor]], Tensor]:
    """A function of x, and of what belongs to its tokens, whose result is a tensor of its own."""

    def run(x: Tensor, along: Mapping[str, Tensor]) -> Tensor:
        # Copies on both sides: fn may write into its input, or hand out the same buffer every time.
        given, name = x.detach().clone(), _argument_name(fn, x)
        more = {its: each.clone() for its, each in along.items()}
        return _pick(fn(given, **more) if name is None else fn(**{name: given}, **more), output).detach().clone()

    return run


def _as_numbers(tensor: Tensor) -> Tensor:
    """The same values in the widest format of their kind, on the CPU; of complex ones both parts, on a last axis."""
    tensor = (torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor).cpu()
    return tensor.to(torch.float64 if tensor.is_floating_point() else torch.int64)


def _numbers(tensor: Tensor, name: str) -> Tensor:
    """The same, refusing NaN and infinity."""
    if not bool(torch.isfinite(tensor).all()):
        raise EquivarianceInputError(
            f"{name} holds NaN or infinity, with which nothing can be compared; mend that first"
        )
    return _as_numbers(tensor)


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


def _modules_of(fn: Any) -> nn.ModuleList:
    """The same, or those that a function names: batch norm in training mode would learn from what it is asked."""
    named = inspect.getclosurevars(fn) if inspect.isfunction(fn) else None
    found = [_module_of(fn)] if named is None else [*named.nonlocals.values(), *named.globals.values()]
    return nn.ModuleList(each for each in found if isinstance(each, nn.Module))
