"""How well is a token's position readable from the hidden states of each layer (Haviv et al. 2022)?"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor, nn
from torch.nn.utils import skip_init

from ..errors import ProbeInputError
from ..inference import torch_threads
from ..public import Count, Seed, public
from ..seeds import torch_generator
from ..serialization import Record
from ..stats import BootstrapInterval, mean_interval
from .estimators import fitted_scaling
from .hidden_states import fitted_and_tested, hidden_states, named, without_padding

HIDDEN = 128
# Tokens a step.
BATCH_SIZE = 512
# Of Adam, falling to zero in a straight line.
LEARNING_RATE = 1e-2
# Tokens whose logits are held at a time when a fitted network is asked.
BLOCK = 4096


def fit_network(
    states: Float[Tensor, "tokens d_model"], labels: Int[Tensor, " tokens"], n_labels: int, steps: int, seed: int
) -> nn.Sequential:
    """Fit a network by Adam on the cross-entropy of tokens drawn with replacement."""
    random = torch_generator(seed, "position network")
    network = _network(states.shape[1], n_labels, random)
    optimizer = torch.optim.Adam(network.parameters(), lr=LEARNING_RATE)
    with torch.enable_grad():
        for step in range(steps):
            optimizer.param_groups[0]["lr"] = LEARNING_RATE * (1 - step / steps)
            drawn = torch.randint(len(states), (BATCH_SIZE,), generator=random)
            loss = F.cross_entropy(network(states[drawn]), labels[drawn])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return network


def predict(network: nn.Sequential, states: Float[Tensor, "tokens d_model"]) -> Int[Tensor, "2 tokens"]:
    """Ask a fitted network for the position of each token: the most probable one, and the median of all probabilities.

    The median has the least expected distance that the network can promise; the most probable position may be anywhere
    where all are about as probable.
    """
    with torch.no_grad():
        return torch.cat([_predicted(network(block)) for block in states.split(BLOCK)], dim=1)


def _predicted(logits: Float[Tensor, "tokens labels"]) -> Int[Tensor, "2 tokens"]:
    below_half = logits.softmax(dim=1).cumsum(dim=1) < 0.5
    return torch.stack([logits.argmax(dim=1), below_half.sum(dim=1)])


def mean_distance(predicted: Int[Tensor, "..."], labels: Int[Tensor, "..."]) -> float:
    """Between predictions and labels, in positions."""
    return float((predicted - labels).abs().double().mean())


def _network(d_model: int, n_labels: int, random: torch.Generator) -> nn.Sequential:
    # Built empty, then filled from a generator of its own: the global state of torch stays as it was.
    network = nn.Sequential(skip_init(nn.Linear, d_model, HIDDEN), nn.ReLU(), skip_init(nn.Linear, HIDDEN, n_labels))
    with torch.no_grad():
        for layer, n_inputs in ((network[0], d_model), (network[2], HIDDEN)):
            reach = n_inputs**-0.5  # as `torch.nn.Linear` starts
            for parameter in layer.parameters():
                parameter.uniform_(-reach, reach, generator=random)
    return network


@public(ProbeInputError)
def random_guess_error(length: Count) -> float:
    """The mean distance between a position and one guessed at random: (T^2 - 1) / (3 T) in texts of T tokens.

    It is the baseline of Haviv et al. (2022). Always guessing the middle is better: see `middle_guess_error`.

    Args:
        length: of a text, in tokens.

    Raises:
        ProbeInputError: a length that is not a whole number of at least 1.

    Example:
        >>> from posembed.probing import random_guess_error
        >>> round(random_guess_error(1024), 2)
        341.33
    """
    return (length**2 - 1) / (3 * length)


@public(ProbeInputError)
def middle_guess_error(length: Count) -> float:
    """The mean distance between a position and the middle of the text: T / 4 for an even number T of tokens.

    No guess that looks at nothing is better. A model whose probe errs by more has not been shown to know anything.

    Args:
        length: of a text, in tokens.

    Raises:
        ProbeInputError: a length that is not a whole number of at least 1.

    Example:
        >>> from posembed.probing import middle_guess_error
        >>> middle_guess_error(1024)
        256.0
    """
    return (length**2 // 4) / length


class PermutedLabels(NamedTuple):
    """Errors of the same network where each text's positions are dealt out among its tokens at random.

    Attributes:
        mae: on held-out texts, which can only be chance.
        train_mae: on the texts it was fitted to: what it has learned by heart.

    Example:
        >>> from posembed.probing import PermutedLabels
        >>> PermutedLabels(21.4, 19.9).train_mae
        19.9
    """

    mae: float
    train_mae: float


@dataclass(frozen=True)
class LayerError:
    """How far from the true positions a probe of one layer guesses. Errors are in positions.

    Attributes:
        layer: 0 is what enters the first layer, n what leaves the n-th, the last one behind the final norm.
        mae: the mean distance of the most probable position on held-out texts, as published.
        interval: of it, over texts.
        train_mae: the same on the texts it was fitted to.
        median_mae: on held-out texts, of the median of the probabilities instead. That is the guess with the least
            expected distance, so without any knowledge it comes out at `middle_guess_error`. The most probable position
            is then whichever a little noise favours, and `mae` some way above that, not always at the random guess.
        accuracy: the share of held-out tokens whose position is the most probable one.
        by_position: the mean distance of the most probable position at each true position.
        permuted_labels: the control; None where it was not run.

    Example:
        >>> from posembed.probing import BootstrapInterval, LayerError, PermutedLabels
        >>> interval, control = BootstrapInterval(0.5, 1.5, 0.95, 3), PermutedLabels(1.2, 0.9)
        >>> error = LayerError(2, 1.0, interval, 0.8, 0.7, 0.25, (1.0, 1.0), control)
        >>> print(error)
        layer 2: 1.00 (0.50 to 1.50), by the median 0.70, permuted labels 1.20
    """

    layer: int
    mae: float
    interval: BootstrapInterval
    train_mae: float
    median_mae: float
    accuracy: float
    by_position: tuple[float, ...]
    permuted_labels: PermutedLabels | None

    def __str__(self) -> str:
        control = "" if self.permuted_labels is None else f", permuted labels {self.permuted_labels.mae:.2f}"
        return f"layer {self.layer}: {self.mae:.2f} ({self.interval}), by the median {self.median_mae:.2f}{control}"


@dataclass(frozen=True, eq=False, repr=False)
class LayerProbeResult(Record):
    """How well positions are readable from each layer of a model.

    Attributes:
        layers: the errors of each layer that was probed, in their order.
        random_guess: the error of a random guess, the published baseline.
        middle_guess: the error of always guessing the middle, the better one.
        example_predictions: the most probable position of each token of the first held-out text, a row for each layer;
            -1 for padding.
        source: the class of the model, the name of the function, or "what was given".
        length: of a text, in tokens.
        n_train: how many texts the probes were fitted to.
        n_test: how many were held out.
        d_model: the width of the states.
        steps: of Adam.
        seed: of the probes.

    Example:
        >>> import torch
        >>> from posembed import Transformer, TransformerConfig
        >>> from posembed.probing import probe_layers
        >>> _ = torch.manual_seed(0)
        >>> model = Transformer(TransformerConfig(50, n_layers=1, scheme="learned", n_positions=8))
        >>> result = probe_layers(model, torch.randint(50, (40, 8)), steps=50, control=False)
        >>> result.example_predictions.shape, len(result.errors), result.middle_guess
        ((2, 8), 2, 2.0)
    """

    layers: tuple[LayerError, ...]
    random_guess: float
    middle_guess: float
    example_predictions: Int[np.ndarray, "layers length"]
    source: str
    length: int
    n_train: int
    n_test: int
    d_model: int
    steps: int
    seed: int

    @property
    def errors(self) -> tuple[float, ...]:
        """The error of each layer on held-out texts."""
        return tuple(each.mae for each in self.layers)

    def __str__(self) -> str:
        lines = [
            f"{self.source}: positions of tokens in {self.n_test} held-out texts of {self.length}, "
            f"by probes fitted to {self.n_train}",
            *(f"  {each}" for each in self.layers),
            f"  guessing at random {self.random_guess:.2f}, always the middle {self.middle_guess:.2f}",
        ]
        return "\n".join(lines)


@public(ProbeInputError)
def probe_layers(
    model: nn.Module | Callable[[Tensor], Any] | Tensor | Sequence[Tensor],
    ids: Shaped[Tensor, "texts ..."] | None = None,
    *,
    attention_mask: Shaped[Tensor, "texts length"] | None = None,
    test_ids: Shaped[Tensor, "tested ..."] | None = None,
    layers: Collection[int] | None = None,
    steps: Count = 1000,
    control: bool = True,
    seed: Seed = 0,
) -> LayerProbeResult:
    """Fit a network with one hidden layer of rectified units to tell each token's position, layer by layer.

    The probe is that of Haviv et al. (2022): for each layer of a frozen model a classifier with as many classes as
    positions, judged by the mean distance between the most probable position and the true one. Theirs took 10 000 steps
    of Adam at 2e-3, with texts of 1024 tokens; here it is 1000 steps from 1e-2 falling to zero, for texts of about 64,
    which takes about a second a layer, and another one for its control. There are 128 hidden units, and 512 tokens a
    step. Both kinds of guess are compared with: see `random_guess_error` and `middle_guess_error`.

    The states of each layer are centred and divided by one root mean square; without that an untrained model, whose
    states are small, could not be read in as few steps.

    The control deals the positions of each text out among its tokens, in the texts for fitting and in the held-out ones
    alike, as `probe_table` permutes its labels. Held out, it can only come out at chance; on the texts it was fitted
    to, it shows what the network learns by heart. (The control task of Hewitt and Liang 2019 labels words instead. A
    word by itself says nothing of its position in texts cut anywhere, so the probe cannot gain by knowing words.)

    Everything runs in one thread; the model is in eval mode meanwhile and is left as it was. All texts' states of the
    chosen layers are held in memory.

    Args:
        model: a model of transformers with one stack of layers, of text, images or sound, or posembed's `Transformer`
            or `LanguageModel`; trained or not. Or a function from a batch to the hidden states of its layers, "batch
            length d_model" each, which are numbered from 0 as it lists them; what it calls must draw nothing, as in
            eval mode. A module of one's own hands out such a list too, or one behind its output. Or, without ids,
            hidden states themselves: "texts length d_model", or those of several layers, a list or in front.
        ids: texts of one length, without padding, at least four. Texts that overlap must not be on both sides: the
            held-out ones are the last quarter, so give pieces in the order of the corpus. Or what else the model or the
            function reads in their place, one a row: embeddings, pixels, samples. A position is then a place in the
            hidden states: 0 is the class token where a model of images has one, and what else it puts in front of its
            patches comes next, a second one (AST, DeiT) or registers (DINOv2).
        attention_mask: of texts of several lengths, 1 for tokens and 0 for the padding behind them. Padding is neither
            fitted nor tested, the guesses to compare with are those among the positions that the held-out texts have,
            and each text's positions are dealt out among its own tokens. A function takes it by this name; hidden
            states have it too.
        test_ids: other texts of that length to test on, at least two; all of `ids` are for fitting then.
        layers: which: 0 is what enters the first layer, n what leaves the n-th, the last one behind the final norm. All
            by default.
        steps: of Adam.
        control: whether to run the control.
        seed: of the networks, the draws, the control and the interval.

    Returns:
        The errors by layer. Their intervals are over texts, by a bootstrap of blocks of neighbouring ones; for another
        probe or another model, probe several and give their errors to `posembed.training.interval`.

    Raises:
        ProbeInputError: ids that are no texts of one length, too few of them, words, positions or layers that the model
            does not have, or an option that cannot be meant.
        ProbeInputError: hidden states, or the loss of a probe, are NaN or infinite.
        ProbeInputError: no hidden states, or layers whose states differ in length or width.

    Example:
        >>> import torch
        >>> from posembed import Transformer, TransformerConfig
        >>> from posembed.probing import probe_layers
        >>> _ = torch.manual_seed(0)
        >>> texts = torch.randint(50, (80, 16))
        >>> for causal in (True, False):
        ...     model = Transformer(TransformerConfig(50, n_layers=1, causal=causal))  # untrained, no positions
        ...     found = probe_layers(model, texts, steps=200, control=False)
        ...     print(causal, found.layers[1].median_mae < 0.9 * found.middle_guess)
        True True
        False False

        Hidden states from elsewhere, here of one layer, or a function that makes them:

        >>> states = torch.randn(80, 16, 8)
        >>> states[..., 0] += torch.arange(16)
        >>> print(probe_layers(states, steps=100, control=False).errors[0] < 1)
        True
        >>> print(probe_layers(lambda batch: [batch, batch**3], states, steps=100, control=False).errors[0] < 1)
        True
    """
    if isinstance(model, Tensor | list | tuple):
        if ids is not None or test_ids is not None:
            raise ProbeInputError(f"{named(model)} is no model and no function; give one, or hidden states without ids")
        # With four axes a tensor is states of several layers.
        model = [model] if isinstance(model, Tensor) and model.ndim < 4 else list(model)
        ids = torch.arange(max(map(len, model), default=0))
    mask = None
    if attention_mask is not None:
        if test_ids is not None:
            raise ProbeInputError(
                "attention_mask is for ids alone; leave test_ids out, and the last quarter is held out"
            )
        ids, mask = without_padding(ids, attention_mask)
    train, test = fitted_and_tested(model, ids, test_ids)
    with torch_threads(1):  # what torch adds up must not depend on how many there are
        states = hidden_states(model, torch.cat([train, test]), layers, mask)
        length, d_model = next(iter(states.values())).shape[1:]
        real = torch.ones(len(train) + len(test), length, dtype=torch.bool) if mask is None else mask
        parts = real[: len(train)], real[len(train) :]
        probed = [
            _probed(layer, each[: len(train)], each[len(train) :], parts, steps, control, seed)
            for layer, each in states.items()
        ]
    random_guess, middle_guess = _guesses(parts[1])
    return LayerProbeResult(
        layers=tuple(error for error, _ in probed),
        random_guess=random_guess,
        middle_guess=middle_guess,
        example_predictions=np.stack([likeliest[0].numpy() for _, likeliest in probed]),
        source=named(model),
        length=length,
        n_train=len(train),
        n_test=len(test),
        d_model=d_model,
        steps=steps,
        seed=seed,
    )


def _guesses(real: Bool[Tensor, "tested length"]) -> tuple[float, float]:
    """The errors of a guess drawn from the positions that texts have, and of the middle one of these."""
    share, at = real.sum(0).double() / real.sum(), torch.arange(real.shape[1])
    middle = at.expand_as(real)[real].median()
    return float(share @ (at[:, None] - at).abs().double() @ share), float(share @ (at - middle).abs().double())


def _probed(
    layer: int,
    train: Float[Tensor, "texts length d_model"],
    test: Float[Tensor, "tested length d_model"],
    real: tuple[Bool[Tensor, "texts length"], Bool[Tensor, "tested length"]],
    steps: int,
    control: bool,
    seed: int,
) -> tuple[LayerError, Int[Tensor, "tested length"]]:
    """The errors of the probe of one layer, and the most probable positions in the held-out texts."""
    length = train.shape[1]
    words, test_words = train[real[0]].numpy(), test[real[1]].numpy()
    scaling = fitted_scaling(words)
    rows, test_rows = (torch.from_numpy(scaling.apply(each)).float() for each in (words, test_words))

    def fitted(labels: Int[Tensor, " tokens"]) -> tuple[Int[Tensor, "2 tokens"], Int[Tensor, "2 tested"]]:
        network = fit_network(rows, labels, length, steps, seed)
        return predict(network, rows), predict(network, test_rows)

    labels, positions = (torch.arange(length).expand_as(each)[each] for each in real)
    (seen, _), (said, median) = fitted(labels)
    likeliest = torch.full_like(real[1], -1, dtype=torch.long).masked_scatter(real[1], said)
    distances = (said - positions).abs().double()
    placed = torch.zeros(real[1].shape, dtype=torch.double).masked_scatter(real[1], distances)
    mae, sizes = float(distances.mean()), real[1].sum(dim=1)
    permuted = None
    if control:
        random = torch_generator(seed, "permuted labels")
        dealt, test_dealt = (
            torch.rand(each.shape, generator=random).masked_fill(~each, torch.inf).argsort(dim=1)[each] for each in real
        )
        (by_heart, _), (by_chance, _) = fitted(dealt)
        permuted = PermutedLabels(mean_distance(by_chance, test_dealt), mean_distance(by_heart, dealt))
    error = LayerError(
        layer=layer,
        mae=mae,
        interval=mean_interval(placed.sum(dim=1).numpy(), sizes=sizes.numpy(), seed=seed),
        train_mae=mean_distance(seen, labels),
        median_mae=mean_distance(median, positions),
        accuracy=float((distances == 0).double().mean()),
        by_position=tuple((placed.sum(dim=0) / real[1].sum(dim=0)).tolist()),
        permuted_labels=permuted,
    )
    return error, likeliest
