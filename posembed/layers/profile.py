"""Position by layer: how much of it is there, what can be read, what is left of the input's, and whether it is used."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ..encodings import PositionScheme
from ..errors import PositionTableError, ProbeInputError
from ..inference import eval_mode, torch_threads
from ..probing.hidden_states import fitted_and_tested, hidden_states, own_transformer, states_of
from ..public import Count, Seed, Whole, public
from ..serialization import Record
from ..tables import find_position_rows, with_position_table
from .ablation import Ablation, ablate, check_skip
from .linear_probe import LinearProbeResult, RetainedInput, all_alike, linear_probe, retained_input
from .variance_decomposition import LayerShares, position_shares


@dataclass(frozen=True, repr=False)
class LayerProfile(Record):
    """What there is of position in the states of one layer.

    Attributes:
        layer: 0 is what enters the first layer, n what leaves the n-th; of a pre-norm model the last is normalised.
        shares: of the variance (`position_shares`).
        position: how well the position can be read (`linear_probe`).
        token: how well the token at this place can; None without ids.
        before: how well the token before can; None without ids, or in texts of two.
        left: what is left of the position vectors added at the input (`retained_input`); None where none are known, or
            all are alike.
        ablations: what the model loses (`ablate`); the last of a pre-norm model is before the final norm. Empty where
            it was not asked for.

    Example:
        >>> from posembed.layers import LayerProfile
        >>> sorted(LayerProfile.__dataclass_fields__)
        ['ablations', 'before', 'layer', 'left', 'position', 'shares', 'token']
    """

    layer: int
    shares: LayerShares
    position: LinearProbeResult
    token: LinearProbeResult | None
    before: LinearProbeResult | None
    left: RetainedInput | None
    ablations: tuple[Ablation, ...]

    def __str__(self) -> str:
        named = {"position": self.position, "token": self.token, "token before": self.before}
        lines = [
            f"{self.shares}",
            *(f"  {name} read {each}" for name, each in named.items() if each is not None),
            *([] if self.left is None else [f"  of the input's position {self.left}"]),
            *(f"  {each}" for each in self.ablations),
        ]
        return "\n".join(lines)


@dataclass(frozen=True, repr=False)
class DepthProfile(Record):
    """What there is of position in each layer of a model.

    Attributes:
        layers: one for each, the embeddings first.
        source: the class of the model.
        length: how many positions.
        n_train: how many texts means and probes were fitted to.
        n_test: how many were held out.
        seed: of it all.

    Example:
        >>> from posembed.layers import DepthProfile
        >>> print(DepthProfile((), "Transformer", 64, 30, 10, 0))
        Transformer: positions by layer in 10 held-out texts of 64, fitted to 30
    """

    layers: tuple[LayerProfile, ...]
    source: str
    length: int
    n_train: int
    n_test: int
    seed: int

    def __str__(self) -> str:
        head = f"{self.source}: positions by layer in {self.n_test} held-out texts of {self.length}, fitted to "
        return "\n".join([f"{head}{self.n_train}", *map(str, self.layers)])


@public(ProbeInputError)
def depth_profile(
    model: nn.Module | Callable[[Tensor], Any],
    ids: Tensor,
    *,
    test_ids: Tensor | None = None,
    skip: Whole = 0,
    ablations: bool = True,
    n_tested: Count = 64,
    loss: Callable[[Any], Float[Tensor, " texts"]] | None = None,
    seed: Seed = 0,
) -> DepthProfile:
    """Measure, layer by layer, what a model's states have of position.

    Shares of the variance are of all held-out texts. Probes and the map to the input's vectors are fitted to the others
    and tested on these; ablations take their means from the others too. Everything runs in one thread.

    Args:
        model: as for `posembed.probe_layers`; for ablations one whose layers are found.
        ids: texts of one length, without padding, in the order of the corpus; or images, or the embeddings of texts,
            whose tokens then have no names.
        test_ids: those to be held out; by default the last quarter of ``ids``.
        skip: so many tokens at the beginning are left out, such as [CLS]; all that stand in front of patches.
        ablations: whether the model is run with its layers changed, which takes longest.
        n_tested: on how many held-out texts, at most, it is run so.
        loss: what is measured of these then, as for `ablate`.
        seed: of controls, draws and intervals.

    Raises:
        ProbeInputError: texts or images that are not so, or a model that cannot be read.

    Example:
        >>> import torch
        >>> from posembed import Transformer, TransformerConfig
        >>> from posembed.layers import depth_profile
        >>> _ = torch.manual_seed(0)
        >>> model = Transformer(TransformerConfig(20, n_layers=1, d_model=16, scheme="learned", n_positions=8))
        >>> _ = model.position_scheme.weight.data.normal_()
        >>> found = depth_profile(model, torch.randint(20, (80, 8)), ablations=False)
        >>> found.layers[0].shares.position > 0.9, found.layers[0].position.accuracy > 0.9
        (True, True)
    """
    train, test = fitted_and_tested(model, ids, test_ids)
    with torch_threads(1):
        states = [*hidden_states(model, torch.cat([train, test])).values()]
        check_skip(model, skip, states[0].shape[1])
        states = [each[:, skip:] for each in states]
        labels = None if ids.is_floating_point() else torch.cat([train, test])[:, skip:].cpu()
        rows = _input_vectors(model, train[:2], skip, *states[0].shape[1:])
        tested = [each[len(train) :] for each in states]
        shares = position_shares(tested, None if labels is None else labels[len(train) :], seed=seed)
        lost = {}
        if ablations:
            lost = ablate(cast(nn.Module, model), train, test[:n_tested], loss=loss, skip=skip, seed=seed)
        layers = tuple(
            LayerProfile(
                layer=number,
                shares=shares[number],
                **_probes(each, labels, len(train), seed),
                left=None if rows is None else retained_input(each[: len(train)], tested[number], rows, seed=seed),
                ablations=lost.get(number, ()),
            )
            for number, each in enumerate(states)
        )
    return DepthProfile(layers, type(model).__name__, states[0].shape[1], len(train), len(test), seed)


def _probes(
    states: Float[Tensor, "texts length d_model"], labels: Tensor | None, n_train: int, seed: int
) -> dict[str, Any]:
    """What can be read: the position, and where tokens have names which one it is and which one comes before."""

    def probe(some: Tensor, its_labels: Tensor) -> LinearProbeResult:
        return linear_probe(some[:n_train], its_labels[:n_train], some[n_train:], its_labels[n_train:], seed=seed)

    places = torch.arange(states.shape[1]).expand(len(states), -1)
    return {
        "position": probe(states, places),
        "token": None if labels is None else probe(states, labels),
        "before": None if labels is None or labels.shape[1] < 3 else probe(states[:, 1:], labels[:, :-1]),
    }


def _input_vectors(
    model: Any, inputs: Tensor, skip: int, length: int, width: int
) -> Float[Tensor, "length d_model"] | None:
    """What is added at each position of the embeddings, where that is known and not everywhere the same."""
    if not isinstance(model, nn.Module):
        return None
    scheme: Any = getattr(own_transformer(model) or model, "position_scheme", None)
    with eval_mode(model):
        if isinstance(scheme, PositionScheme):  # one that `use_scheme` put in, too
            zeros = next(model.parameters()).new_zeros(1, length, width)
            at = torch.arange(skip, skip + length, device=zeros.device)
            rows = scheme.add(zeros, at)[0] if scheme.adds else zeros[0]
        else:
            rows = _table_rows(model, inputs)[skip:]
    # Embeddings may be widened behind the table; that of a larger image is interpolated or cut, and its first rows are
    # not those of the first patches. BEiT begins with a table of zeros.
    of_image = inputs.is_floating_point() and not isinstance(scheme, PositionScheme)
    if (
        rows.shape[1:] != (width,)
        or len(rows) < length
        or (of_image and len(rows) != length)
        or all_alike(rows[:length])
    ):
        return None
    return rows[:length].float().cpu()


def _table_rows(model: nn.Module, inputs: Tensor) -> Float[Tensor, "n_positions d_model"]:
    """Those of the table that the model looks into for these inputs, none where that of another part is all it has."""
    try:
        rows = find_position_rows(model).rows
        with with_position_table(model, "zeroed"):
            without = states_of(model, inputs)[0]
    except PositionTableError:
        return torch.empty(0, 0)
    return torch.empty(0, 0) if torch.equal(states_of(model, inputs)[0], without) else rows
