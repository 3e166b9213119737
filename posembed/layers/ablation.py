"""Is the position that is in a layer's states used? What a model loses where it is taken out, or exchanged."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from ..errors import ProbeInputError
from ..inference import CALLED_WRONGLY, eval_mode
from ..models import LanguageModel, Transformer
from ..probing.hidden_states import (
    BATCH_SIZE,
    check_repeatable,
    chosen_layers,
    fitted_and_tested,
    own_transformer,
    relative_change,
    states_of,
)
from ..public import Count, Seed, Whole, public
from ..seeds import torch_generator
from ..serialization import Record
from ..stats import BootstrapInterval, mean_interval

# Of the variance of the mean states, so much is in the directions that are projected out.
KEPT = 0.9
# How far above chance a direction must be: in units of the largest variance that chance gives.
ABOVE_CHANCE = 2.0
# What models call the tokens that they put in front of patches.
IN_FRONT = frozenset(
    {"class_embedding", "cls_token", "dist_token", "distillation_token", "reg_token", "register_tokens"}
)

Change = Callable[[Tensor], Tensor]


@dataclass(frozen=True, repr=False)
class Ablation(Record):
    """What a model loses where the position in the states of one layer is changed.

    Attributes:
        kind: "project out", "shuffle", "swap" or "exchange", as `ablate` explains.
        cost: the mean rise of the loss, or the mean change of the last states as a part of their size.
        interval: of it, over texts.
        control: the same by a change of the same size that has nothing to do with position, the mean over the draws.
        difference: the cost less that of the control, with its interval over texts.
        difference_interval: of it.
        n_directions: how many are projected out, or exchanged; None for the others.

    Example:
        >>> from posembed.layers import Ablation
        >>> from posembed.stats import BootstrapInterval
        >>> interval = BootstrapInterval(0.9, 1.1, 0.95, 4)
        >>> print(Ablation("swap", 1.0, interval, 0.2, 0.8, interval, None))
        swap costs 1.0000 (0.90 to 1.10), its control 0.2000
    """

    kind: str
    cost: float
    interval: BootstrapInterval
    control: float
    difference: float
    difference_interval: BootstrapInterval
    n_directions: int | None

    def __str__(self) -> str:
        n = self.n_directions
        of = "" if n is None else f" of {n} direction{'s' * (n != 1)}"
        return f"{self.kind}{of} costs {self.cost:.4f} ({self.interval}), its control {self.control:.4f}"


@public(ProbeInputError)
def ablate(
    model: nn.Module,
    fit_ids: Tensor,
    ids: Tensor,
    *,
    layers: Collection[int] | None = None,
    loss: Callable[[Any], Float[Tensor, " texts"]] | None = None,
    skip: Whole = 0,
    n_draws: Count = 2,
    seed: Seed = 0,
) -> dict[int, tuple[Ablation, ...]]:
    """Change what the states of one layer have of position, let the model go on from there, and measure what it loses.

    The position in the states of a layer is the mean state at each position, over other texts, less the mean of all.
    Every change is made to the output of the layer, for all tokens at once:

    "project out": the directions in which these means differ are removed: in them, all states get the mean of all. They
    are the principal directions of what the means of two halves of the texts have in common, down to 90 % of it, and
    only those whose variance is twice as large as what chance makes of such a product. Its control removes as many
    directions drawn at random.

    "shuffle": a token's part of position is replaced by that of another one, with one permutation of the positions for
    each text. Its control adds the same vectors, turned by one random rotation: as large, as different from each other,
    and in directions that have nothing to do with position.

    "swap": the same with positions p and p + length // 2 exchanged: order within a half stays as it was.

    "exchange": between texts. In the directions that "project out" removes, each text gets the coordinates of another
    one at the same positions: what is position there stays, what these directions have of a text goes. Its control
    exchanges as many random directions. Where projecting out costs much and this costs little, it was position that
    was missed; where this costs as much, it was what else these directions hold.

    What is taken out is a mean: position that is there in another form, such as products with a word, stays. Where
    positions are added again at every layer, or attention has them (RoPE), the layers that follow have them still.

    Args:
        model: posembed's own or one of transformers, with one stack of layers.
        fit_ids: texts, or images, that the means are taken of.
        ids: others, two or more, on which the model is measured.
        layers: which: 0 is what enters the first layer, n what leaves the n-th, before a final norm. All by default.
        loss: what is measured: a function of the model that gives a number for each of some texts, such as ``ids``, and
            hands the model two or more of them at a time, which can then be exchanged. By default the mean loss of the
            next token for a causal `LanguageModel`; for all others the mean distance of the last states from those
            without the change, as a part of their size.
        skip: so many tokens at the beginning stay as they are, such as [CLS]; all that stand in front of patches.
        n_draws: of each control.
        seed: of permutations, directions, rotations and intervals.

    Returns:
        For each layer the four ablations.

    Raises:
        ProbeInputError: a model whose layers cannot be found, a layer that it does not have, or options that cannot be
            meant, such as fewer than two texts.

    Example:
        >>> import torch
        >>> from posembed import TransformerConfig
        >>> from posembed.layers import ablate
        >>> from posembed.models import LanguageModel
        >>> _ = torch.manual_seed(0)
        >>> model = LanguageModel(TransformerConfig(20, n_layers=2, causal=False))  # no positions: nothing to lose
        >>> found = ablate(model, torch.randint(20, (40, 6)), torch.randint(20, (8, 6)), layers=[1])
        >>> found[1][0].cost
        0.0
    """
    fit_ids, ids = fitted_and_tested(model, fit_ids, ids)
    random, stack = torch_generator(seed, "ablations"), layers_of(model, fit_ids)
    chosen = chosen_layers(model, layers, len(stack) + 1)
    with eval_mode(model):
        check_repeatable(model, fit_ids[:2])
        check_skip(model, skip, states_of(model, fit_ids[:2])[0].shape[1])
        halves = [_mean_states(model, stack, chosen, half) for half in fit_ids.tensor_split(2)]
        share = len(fit_ids) // 2 / len(fit_ids)  # of the second half
        cost = _cost_of(model, ids, loss)

        def run(change: Change, layer: int) -> Float[Tensor, " texts"]:
            with changed(stack, layer, lambda states: torch.cat([states[:, :skip], change(states[:, skip:])], dim=1)):
                return cost()

        return {
            layer: _ablations(
                partial(run, layer=layer), [half[layer][skip:] for half in halves], share, n_draws, random, seed
            )
            for layer in chosen
        }


def check_skip(model: Any, skip: int, length: int) -> None:
    """Refuse to leave out a part of the tokens in front of patches, or all tokens but one."""
    parameters = model.named_parameters() if isinstance(model, nn.Module) else ()
    tokens = [each for name, each in parameters if name.rpartition(".")[2] in IN_FRONT]
    n_in_front = sum(each.shape[-2] if each.ndim > 1 else 1 for each in tokens)
    if 0 < skip < n_in_front or length - skip < 2:
        raise ProbeInputError(
            f"skip is {skip} of {length} positions; leave two or more"
            + f", and of the {n_in_front} in front of patches all or none" * bool(n_in_front)
        )


@public(ProbeInputError)
def layers_of(model: nn.Module, inputs: Tensor | None = None) -> nn.ModuleList:
    """Find the layers of a model, one after the other.

    In a model of transformers they are a list of as many modules as its config says, and what enters and leaves them
    are the hidden states that the model hands out.

    Args:
        model: posembed's own or one of transformers, with one stack of layers.
        inputs: texts, or images, with whose first two that is verified; without them it is taken for granted where
            there is only one such list.

    Raises:
        ProbeInputError: they are not found, or the inputs are no tensor.

    Example:
        >>> from posembed import Transformer, TransformerConfig
        >>> from posembed.layers import layers_of
        >>> len(layers_of(Transformer(TransformerConfig(20, n_layers=3))))
        3
    """
    own = own_transformer(model) or getattr(model, "transformer", None)
    if isinstance(own, Transformer):
        return own.layers
    n_layers = getattr(getattr(model, "config", None), "num_hidden_layers", None)
    lists = [each for each in model.modules() if isinstance(each, nn.ModuleList) and len({*each}) == n_layers]
    if inputs is not None:
        lists = [each for each in lists if _hand_on_states(model, each, inputs[:2])][:1]
    # A list inside of a layer, such as of experts, is no other candidate.
    if not lists or not {*lists} <= {*lists[0].modules()}:
        raise ProbeInputError(
            f"the layers of {type(model).__name__} are not found; give a model that hands its states from one of a "
            "list of layers to the next, or leave ablations out: depth_profile(..., ablations=False)"
        )
    return lists[0]


def _hand_on_states(model: nn.Module, stack: nn.ModuleList, inputs: Tensor) -> bool:
    """Whether the states that `changed` would change are those of the model, and all that it goes on from."""
    with eval_mode(model):
        states_of(model, inputs)  # what it cannot be called with is not the layers' fault
        try:
            states, noted = _noted(model, stack, range(len(stack) + 1), inputs)
            # The last one may be handed out behind a norm, which makes the same of all that is zero.
            with changed(stack, len(stack), torch.zeros_like):
                last = states_of(model, inputs)[-1]
        except (KeyError, *CALLED_WRONGLY):  # modules that are given no states, or give more than these
            return False
    same = len(states) == len(noted) and all(_alike(noted[n], each) for n, each in enumerate(states[:-1]))
    return same and _alike(last, last[:1, :1].expand_as(last))


def _alike(one: Any, other: Tensor) -> bool:
    same_shape = isinstance(one, Tensor) and one.shape == other.shape
    return same_shape and torch.allclose(one, other, rtol=1e-3, atol=1e-3, equal_nan=True)


@public(ProbeInputError)
@contextmanager
def changed(stack: nn.ModuleList, layer: Whole, change: Change) -> Iterator[None]:
    """Change the states of a layer inside the block: what leaves the n-th, or for 0 what enters the first.

    The layer's ``forward`` is exchanged, as transformers notes hidden states before any hook would change them.

    Args:
        stack: what `layers_of` finds.
        layer: whose states; 0 is what enters the first.
        change: a function of states, "batch length d_model", that gives others.

    Raises:
        ProbeInputError: what is no list of layers, or no number of one.

    Example:
        >>> import torch
        >>> from posembed import Transformer, TransformerConfig
        >>> from posembed.layers import changed, layers_of
        >>> model = Transformer(TransformerConfig(20, n_layers=2))
        >>> with changed(layers_of(model), 1, torch.zeros_like):
        ...     states = model.hidden_states(torch.tensor([[3, 1, 4]]))
        >>> bool(states[0].any()), bool(states[1].any())
        (True, False)
    """
    module: Any = stack[max(layer, 1) - 1]
    before, forward = module.__dict__.get("forward"), module.forward

    def changing(*given: Any, **named: Any) -> Any:
        if layer:
            output = forward(*given, **named)
            return (change(output[0]), *output[1:]) if isinstance(output, tuple | list) else change(output)
        if given:
            return forward(change(given[0]), *given[1:], **named)
        return forward(**named | {"hidden_states": change(named["hidden_states"])})

    module.forward = changing
    try:
        yield
    finally:
        if before is None:
            del module.forward
        else:
            module.forward = before


def _noted(
    model: nn.Module, stack: nn.ModuleList, layers: Sequence[int], inputs: Tensor
) -> tuple[Sequence[Tensor], dict[int, Any]]:
    """The states that a model hands out for a batch, and those of some layers that `changed` would change."""
    noted: dict[int, Any] = {}

    def note(states: Any, layer: int) -> Any:
        noted[layer] = states
        return states

    with ExitStack() as hooks:
        for layer in layers:
            hooks.enter_context(changed(stack, layer, partial(note, layer=layer)))
        return states_of(model, inputs), noted


def _mean_states(
    model: nn.Module, stack: nn.ModuleList, layers: Sequence[int], ids: Tensor
) -> dict[int, Float[Tensor, "length d_model"]]:
    """The mean state at each position, layer by layer; of the last before a final norm."""
    sums: dict[int, Any] = dict.fromkeys(layers, 0)
    for some in ids.split(BATCH_SIZE):
        for layer, states in _noted(model, stack, layers, some)[1].items():
            sums[layer] = sums[layer] + states.double().sum(dim=0)
    return {layer: total / len(ids) for layer, total in sums.items()}


def _directions(one: Float[Tensor, "length d_model"], other: Float[Tensor, "length d_model"]) -> Tensor:
    """Those, "n d_model", in which the means of both halves differ alike, more than by chance."""
    one, other = _centred(one), _centred(other)
    values, vectors = torch.linalg.eigh(one.mT @ other + other.mT @ one)
    # Of products of noise with noise as many are negative as positive, and as large.
    least = max(-ABOVE_CHANCE * float(values[0]), 1e-9 * float(values[-1]), torch.finfo(values.dtype).tiny)
    values, vectors = values.flip(0), vectors.flip(1).mT
    above = int((values > least).sum())
    shares = values[:above].cumsum(0) / values[:above].sum()
    return vectors[: min(int((shares < KEPT).sum()) + 1, above)]


def _centred(rows: Float[Tensor, "length d_model"]) -> Float[Tensor, "length d_model"]:
    return rows - rows.mean(dim=0)


def _ablations(
    run: Callable[[Change], Float[Tensor, " texts"]],
    halves: list[Float[Tensor, "length d_model"]],
    share: float,
    n_draws: int,
    random: torch.Generator,
    seed: int,
) -> tuple[Ablation, ...]:
    """The four changes at one layer, each with its control, from the mean states of two halves of the texts."""
    one, other = halves
    mean = one.lerp(other, share)
    part, basis = _centred(mean), _directions(one, other)
    width, n = part.shape[1], len(basis)
    turned = [
        torch.linalg.qr(torch.randn(width, width, dtype=torch.float64, generator=random))[0] for _ in range(n_draws)
    ]
    # Any so many columns of a random rotation are random directions.
    bases = [basis, *(turn[:, :n].mT for turn in turned)]
    parts = [part, *(part @ turn for turn in turned)]
    order = int(torch.randint(2**31, (), generator=random))
    changes: dict[str, list[Change]] = {
        "project out": [_without(each, mean.mean(dim=0)) for each in bases],
        "shuffle": [_shuffled(each, order) for each in parts],
        "swap": [_swapped(each) for each in parts],
        "exchange": [_exchanged(each) for each in bases],
    }
    return tuple(
        _ablation(kind, [run(each) for each in some], seed, n if kind in ("project out", "exchange") else None)
        for kind, some in changes.items()
    )


def _without(basis: Float[Tensor, "n d_model"], middle: Float[Tensor, " d_model"]) -> Change:
    """Give all states the middle's coordinates in the directions of a basis."""
    return lambda states: states - (states - middle.to(states)) @ basis.to(states).mT @ basis.to(states)


def _exchanged(basis: Float[Tensor, "n d_model"]) -> Change:
    """Give each text of a batch the coordinates that the one before it has in the directions of a basis."""

    def change(states: Tensor) -> Tensor:
        if len(states) < 2:
            raise ProbeInputError(
                "loss gives the model one text alone, so none can be exchanged; give it two at a time"
            )
        return states + (states.roll(1, 0) - states) @ basis.to(states).mT @ basis.to(states)

    return change


def _swapped(rows: Float[Tensor, "length d_model"]) -> Change:
    """Exchange the parts of position of the two halves; the last one of an odd number stays."""
    half = len(rows) // 2
    moves = torch.cat([rows[half : 2 * half], rows[:half], rows[2 * half :]]) - rows
    # A model that predicts the next token may be given all but the last one.
    return lambda states: states + moves[: states.shape[1]].to(states)


def _shuffled(rows: Float[Tensor, "length d_model"], order: int) -> Change:
    """For each text another permutation, the same ones each time that this is made."""
    random = torch.Generator().manual_seed(order)

    def change(states: Tensor) -> Tensor:
        places = torch.rand(*states.shape[:2], generator=random).argsort(dim=1)
        return states + (rows[places] - rows[: states.shape[1]]).to(states)

    return change


def _ablation(kind: str, costs: list[Float[Tensor, " texts"]], seed: int, n: int | None) -> Ablation:
    """From the costs of a change and of its controls."""
    cost, *controls = costs
    control = torch.stack(controls).mean(dim=0)
    return Ablation(
        kind=kind,
        cost=float(cost.mean()),
        interval=mean_interval(cost.numpy(), seed=seed),
        control=float(control.mean()),
        difference=float((cost - control).mean()),
        difference_interval=mean_interval((cost - control).numpy(), seed=seed),
        n_directions=n,
    )


def _cost_of(
    model: nn.Module, ids: Tensor, loss: Callable[[Any], Float[Tensor, " texts"]] | None
) -> Callable[[], Float[Tensor, " texts"]]:
    """A function that says by how much the model does worse than now, or otherwise, for each text."""
    # Of one size, so that no text is alone in the last one.
    batches = ids.tensor_split(-(-len(ids) // BATCH_SIZE))
    predicts = isinstance(model, LanguageModel) and model.transformer.config.causal

    def measured() -> Tensor:
        if loss is not None:
            return loss(model).detach().double().cpu()
        of_batch: Any = partial(next_token_loss, model) if predicts else lambda some: states_of(model, some)[-1]
        return torch.cat([of_batch(some).double().cpu() for some in batches])

    before = measured()
    if loss is not None or predicts:
        return lambda: measured() - before
    return lambda: relative_change(before, measured()).mean(dim=1)


@public(ProbeInputError)
def next_token_loss(model: Any, ids: Int[Tensor, "texts length"]) -> Float[Tensor, " texts"]:
    """The mean loss of the next token in each text, in nats.

    Args:
        model: gives logits, or an output that has them, and sees no token ahead.
        ids: the texts.

    Raises:
        ProbeInputError: ids that are no texts.

    Example:
        >>> import torch
        >>> from posembed.layers import next_token_loss
        >>> certain = lambda ids: 100.0 * torch.nn.functional.one_hot((ids + 1) % 5, 5)
        >>> next_token_loss(certain, torch.arange(5)[None])
        tensor([0.])
    """
    ids = ids.to(next(model.parameters(), ids).device) if isinstance(model, nn.Module) else ids
    output = model(ids[:, :-1])
    logits = getattr(output, "logits", output)
    return F.cross_entropy(logits.mT.float(), ids[:, 1:], reduction="none").mean(dim=1)
