"""How well positions are readable from each layer."""

import json
import math

import numpy as np
import pytest
import torch
import transformers
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused
from small_models import build
from transformers import (
    DINOv3ViTConfig,
    DINOv3ViTModel,
    FSMTConfig,
    FSMTModel,
    FunnelConfig,
    FunnelModel,
    MgpstrConfig,
    MgpstrModel,
    PerceiverConfig,
    PerceiverForMaskedLM,
    TimesFmConfig,
    TimesFmModel,
    ViTMAEConfig,
    ViTMAEModel,
    Wav2Vec2Config,
    Wav2Vec2ForCTC,
    Wav2Vec2Model,
)

from posembed import Transformer, TransformerConfig
from posembed.errors import ProbeInputError
from posembed.inference import torch_threads
from posembed.layers import layers_of
from posembed.probing import (
    mean_interval,
    middle_guess_error,
    probe_layers,
    random_guess_error,
)
from posembed.probing.hidden_states import hidden_states, read_by
from posembed.probing.layers import _Probe
from posembed.probing.position_network import HIDDEN, LEARNING_RATE, _guess, fit_network, guess

VOCABULARY, LENGTH = 60, 12
QUICK = {"steps": 20}


def texts(n=40, length=LENGTH, seed=0, least=0, size=VOCABULARY):
    return torch.randint(least, size, (n, length), generator=torch.Generator().manual_seed(seed))


def model(scheme="nopos", *, causal=True, kind=Transformer, seed=0, **sizes):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        options = {"d_model": 32, "n_heads": 2, "n_layers": 2, "n_positions": LENGTH} | sizes
        return kind(TransformerConfig(VOCABULARY, scheme=scheme, causal=causal, **options))


def with_table(size, **options):
    """A model whose position vectors are so much larger than its words that each layer says the position."""
    made = model("learned", **options)
    torch.nn.init.normal_(made.position_scheme.weight, std=size, generator=torch.Generator().manual_seed(1))
    return made


# Both guesses.


@given(st.integers(1, 80))
def test_the_baselines_are_the_mean_distances_of_guesses(length):
    """Of 1024 positions, as published, 341.33."""
    distances = abs(np.arange(length)[:, None] - np.arange(length))
    assert random_guess_error(length) == pytest.approx(distances.mean())
    assert middle_guess_error(length) == pytest.approx(distances.mean(axis=0).min())


# What is read, and what is not.


def test_positions_that_are_there_are_read():
    result = probe_layers(with_table(1.0), texts(), steps=100)
    for layer in result.layers:
        assert layer.mae < 0.05 and layer.median_mae < 0.05 and layer.accuracy > 0.95
        assert layer.permuted_labels.mae > 0.8 * result.middle_guess
    assert (result.example_predictions == np.arange(LENGTH)).mean() > 0.95


def test_the_control_shows_what_is_learned_by_heart():
    """Few texts and many steps: chance on texts that it has not seen, better on those that it has."""
    result = probe_layers(model(), texts(12), layers=[1, 2], steps=150)
    for layer in result.layers:
        assert layer.permuted_labels.train_mae < 0.5 * result.middle_guess < layer.permuted_labels.mae
        assert layer.permuted_labels.mae == pytest.approx(result.random_guess, rel=0.35)


# The numbers of a result.


@pytest.fixture(scope="module")
def result():
    return probe_layers(model(), texts(16), **QUICK)


def test_the_errors_are_those_of_the_guesses(result):
    """Of the network fitted anew, layer by layer."""
    states = hidden_states(model(), texts(16))
    for row, layer in enumerate(result.layers):
        with torch_threads(1):
            probe = _Probe(states[row][:12], states[row][12:], 1, 0)
            network = fit_network(probe.train, torch.arange(LENGTH).repeat(12), LENGTH, QUICK["steps"], 0)
            guessed = network(probe.test).argmax(1).view(4, LENGTH)
        of_layer = (guessed - torch.arange(LENGTH)).abs().double().numpy()
        np.testing.assert_array_equal(result.example_predictions[row], guessed[0])
        assert layer.mae == pytest.approx(of_layer.mean()) == pytest.approx(np.mean(layer.by_position))
        assert layer.by_position == pytest.approx(of_layer.mean(axis=0))
        assert layer.accuracy == pytest.approx((of_layer == 0).mean())
        assert layer.interval == mean_interval(of_layer.mean(axis=1))
    assert result.errors == tuple(layer.mae for layer in result.layers)


def test_a_result_says_what_was_asked(result):
    assert [layer.layer for layer in result.layers] == [0, 1, 2]
    assert (result.n_train, result.n_test, result.length, result.d_model) == (12, 4, LENGTH, 32)
    assert (result.random_guess, result.middle_guess) == (random_guess_error(LENGTH), middle_guess_error(LENGTH))
    assert result.example_predictions.shape == (3, LENGTH) and (result.steps, result.seed) == (QUICK["steps"], 0)


def test_a_result_can_be_stored_and_printed(result):
    stored = json.loads(json.dumps(result.to_dict()))
    assert [layer["mae"] for layer in stored["layers"]] == list(result.errors)
    assert stored["example_predictions"] == result.example_predictions.tolist()
    first, *layers, last = str(result).splitlines()
    assert first == "Transformer: positions of tokens in 4 held-out texts of 12, by probes fitted to 12"
    assert [line.split(":")[0] for line in layers] == ["  layer 0", "  layer 1", "  layer 2"]
    assert last == f"  guessing at random {result.random_guess:.2f}, always the middle 3.00"


@given(st.integers(0, 1000), st.integers(2, 9))
def test_the_median_is_the_guess_with_the_least_expected_distance(seed, n):
    logits = 2 * torch.randn(4, n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    found, at = _guess(logits), torch.arange(n)
    expected = logits.softmax(1) @ (at[:, None] - at).abs().double()
    least = expected.min(dim=1).values
    torch.testing.assert_close(expected.gather(1, found.median[:, None])[:, 0], least, rtol=1e-12, atol=1e-12)
    assert torch.equal(found.likeliest, logits.max(dim=1).indices)


def test_many_tokens_are_asked_in_blocks():
    network = fit_network(torch.randn(20, 3), torch.arange(20) % 4, 4, 3, 0)
    states = torch.randn(9000, 3, generator=torch.Generator().manual_seed(0))
    whole = network(states).detach()
    assert torch.equal(guess(network, states).likeliest, whole.argmax(1))


def test_the_network_has_its_sizes_and_its_rate_falls_to_nothing_in_a_straight_line(monkeypatch):
    rates, drawn, step, randint = [], [], torch.optim.Adam.step, torch.randint
    monkeypatch.setattr(torch.optim.Adam, "step", lambda self: rates.append(self.param_groups[0]["lr"]) or step(self))
    monkeypatch.setattr(torch, "randint", lambda *given, **options: drawn.append(given) or randint(*given, **options))
    first, _, last = fit_network(torch.ones(20, 3), torch.arange(20) % 4, 4, 4, 0)
    assert (first.in_features, first.out_features, last.out_features) == (3, HIDDEN, 4) and HIDDEN == 128
    assert rates == pytest.approx([LEARNING_RATE * share for share in (1, 0.75, 0.5, 0.25)]) and LEARNING_RATE == 0.01
    assert drawn == [(20, (512,))] * 4


def test_a_loss_that_is_no_number_is_named():
    assert "the loss of the probe is nan; look at the model's hidden states" in refused(
        ProbeInputError, fit_network, torch.full((20, 3), math.nan), torch.arange(20) % 4, 4, 1, 0
    )


def test_the_control_deals_out_each_texts_positions_among_its_tokens(monkeypatch):
    fitted = []

    def spy(states, labels, *rest):
        fitted.append(labels.view(-1, LENGTH))
        return fit_network(states, labels, *rest)

    judged = []
    monkeypatch.setattr("posembed.probing.layers.fit_network", spy)
    judge = lambda _, labels: float(len(judged.append(labels) or judged))
    monkeypatch.setattr("posembed.probing.layers.mean_distance", judge)
    probe_layers(model(), texts(16), layers=[0], **QUICK)
    true, dealt = fitted
    # Judged on the true labels that were fitted to, on the median, on the held-out dealt ones, on those fitted to.
    assert torch.equal(judged[0], true.flatten()) and torch.equal(judged[3], dealt.flatten())
    held_out = judged[2].view(4, LENGTH)
    assert torch.equal(held_out.sort(dim=1).values, true[:4]) and not torch.equal(held_out, true[:4])
    assert torch.equal(true, torch.arange(LENGTH).expand(12, -1))
    assert torch.equal(dealt.sort(dim=1).values, true) and len({tuple(row) for row in dealt.tolist()}) == 12


# The same again.


def test_it_follows_its_seed_and_leaves_everything_else_alone(result):
    made, state, threads = model(dropout=0.5).train(), torch.get_rng_state(), torch.get_num_threads()
    made.load_state_dict(model().state_dict())
    made.layers[0].eval()
    inside = []
    made.words.register_forward_pre_hook(lambda *given: inside.append(torch.get_num_threads()))
    try:
        torch.set_num_threads(2)
        again = probe_layers(made, texts(16), **QUICK)
        assert torch.get_num_threads() == 2 and set(inside) == {1}
    finally:
        torch.set_num_threads(threads)
    assert again.to_dict() == result.to_dict()
    assert torch.equal(torch.get_rng_state(), state)
    assert made.training and not made.layers[0].training and made.layers[1].training
    assert all(parameter.grad is None for parameter in made.parameters())
    assert probe_layers(made, texts(16), **QUICK, seed=1).errors != result.errors


def test_some_layers_come_out_as_among_all(result):
    some = probe_layers(model(), texts(16), layers=[2, 0], **QUICK)
    assert some.layers == (result.layers[0], result.layers[2])
    np.testing.assert_array_equal(some.example_predictions, result.example_predictions[[0, 2]])


def test_held_out_texts_can_be_given(result):
    given_apart = probe_layers(model(), texts(16)[:12], test_ids=texts(16)[12:], **QUICK)
    assert given_apart.to_dict() == result.to_dict()


@given(st.sampled_from([2.0**-40, 0.25, 1024.0]))
def test_the_size_of_the_states_changes_nothing(size):
    states = torch.randn(6, 5, 3, generator=torch.Generator().manual_seed(0))
    one, other = (_Probe(size * part[:4], size * part[4:], 5, 0) for part in (states, states / size))
    assert torch.equal(one.train, other.train) and one.error(0, False) == other.error(0, False)


# Models of transformers.


@pytest.mark.parametrize("kind", ["bert", "gpt2-lm", "llama", "opt", "xlnet"])
def test_states_are_those_that_a_model_hands_out(kind):
    made, ids = build(kind), texts(35, 5, least=4, size=30)
    with torch.no_grad():
        wanted = made(ids, output_hidden_states=True).hidden_states
    found = hidden_states(made, ids)
    assert list(found) == list(range(len(wanted)))
    for layer, states in found.items():
        torch.testing.assert_close(states, wanted[layer], rtol=0, atol=1e-6)


# What else has hidden states.

SOUND = {
    "hidden_size": 16,
    "intermediate_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "conv_dim": [8],
    "conv_kernel": [4],
    "conv_stride": [4],
    "num_conv_pos_embeddings": 4,
    "num_conv_pos_embedding_groups": 2,
    "num_feat_extract_layers": 1,
}


def numbers(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


def test_hidden_states_themselves_and_a_function_come_out_as_their_model(result):
    states = list(hidden_states(model(), texts(16)).values())
    by_function = probe_layers(lambda batch: model().eval().hidden_states(batch), texts(16), **QUICK)
    assert by_function.source == "<lambda>" and by_function.to_dict() == result.to_dict() | {"source": "<lambda>"}
    for found in (probe_layers(states, **QUICK), probe_layers(tuple(states), **QUICK)):
        assert found.to_dict() == result.to_dict() | {"source": "what was given"}
    assert probe_layers(states, layers=[1], **QUICK).layers == result.layers[1:2]
    one = probe_layers(states[1].requires_grad_(), **QUICK)
    assert one.errors == result.errors[1:2] and one.layers[0].layer == 0


def test_a_function_may_return_one_layer_and_read_what_it_likes():
    seen = []
    given_apart = {"test_ids": numbers(3, 5, 4)}
    found = probe_layers(
        lambda batch: seen.append(batch) or batch.bfloat16(), numbers(40, 5, 4), **given_apart, **QUICK
    )
    assert torch.equal(torch.cat(seen), torch.cat([numbers(40, 5, 4), numbers(3, 5, 4)]))
    assert (found.n_train, found.n_test, found.length, found.d_model) == (40, 3, 5, 4)


def test_a_module_of_ones_own_is_a_function_in_eval_mode():
    made = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.Dropout(0.9))
    assert torch.equal(hidden_states(made, numbers(8, 5, 4))[0], made[0](numbers(8, 5, 4)).detach())
    assert made.training and probe_layers(made, numbers(8, 5, 4), **QUICK).source == "Sequential"


@pytest.mark.parametrize("format", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("build_one", "name", "shape", "length"),
    [
        (lambda: build("vit"), "pixel_values", (3, 8, 8), 5),
        (lambda: Wav2Vec2ForCTC(Wav2Vec2Config(**SOUND)).eval(), "input_values", (40,), 10),
    ],
)
def test_models_of_images_and_sound_are_read(build_one, name, shape, length, format):
    made, given = build_one(), numbers(8, *shape)
    with torch.no_grad():
        out = getattr(made, "base_model", made)(**{name: given}, output_hidden_states=True)
    wanted = (*out.hidden_states[:-1], out.last_hidden_state)  # behind its last norm
    for layer, states in hidden_states(made, given.to(format)).items():
        torch.testing.assert_close(states, wanted[layer], rtol=0, atol=1e-6)
    found = probe_layers(made, given.to(format), **QUICK)
    assert found.length == length and len(found.layers) == len(wanted) == 2


def test_a_model_whose_base_reads_no_pixels_is_read_whole():
    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    made = DINOv3ViTModel(DINOv3ViTConfig(**sizes, image_size=8, patch_size=4, num_register_tokens=2)).eval()
    assert list(hidden_states(made, numbers(4, 3, 8, 8))) == [0, 1]
    assert probe_layers(made, numbers(8, 3, 8, 8), **QUICK).length == 1 + 2 + 4


def test_a_part_without_a_name_for_what_it_reads_is_asked_for_its_states():
    settings = {"src_vocab_size": 20, "tgt_vocab_size": 20, "d_model": 16, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16}
    few = dict.fromkeys(("encoder_layers", "decoder_layers"), 2) | dict.fromkeys(
        ("encoder_attention_heads", "decoder_attention_heads"), 2
    )
    model = FSMTModel(FSMTConfig(langs=["en", "de"], **settings, **few)).eval()
    ids = torch.randint(4, 20, (8, 6), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        expected = model.encoder(ids, output_hidden_states=True).hidden_states
    found = hidden_states(model.get_encoder(), ids)
    assert len(found) == len(expected) == 3
    for layer, states in found.items():
        torch.testing.assert_close(states, expected[layer])


def test_the_last_states_are_those_that_a_head_reads():
    """CLIP's text model hands out the last state before its final norm."""
    for kind in ("clip", "gpt2", "bert"):
        model = build(kind)
        model = model.text_model if kind == "clip" else model
        ids = torch.randint(5, 30, (4, 6), generator=torch.Generator().manual_seed(0))
        with torch.no_grad():
            last = model(ids).last_hidden_state
        torch.testing.assert_close([*hidden_states(model, ids).values()][-1], last)


def test_a_model_of_text_takes_vectors_too():
    for kind in ("gpt2", "bert"):
        model, ids = build(kind), texts(8, 6, least=5, size=30)
        vectors = model.get_input_embeddings()(ids).detach()
        for layer, states in hidden_states(model, ids).items():
            torch.testing.assert_close(hidden_states(model, vectors)[layer], states)
        assert probe_layers(model, vectors, **QUICK).errors == probe_layers(model, ids, **QUICK).errors


@pytest.mark.parametrize("kind", ["Mamba", "FalconMamba", "Mamba2", "Rwkv"])
def test_states_begin_with_what_enters_the_first_layer(kind):
    """These hand out what leaves each layer, and the last once more behind its norm."""
    sizes = {"vocab_size": 30, "hidden_size": 16, "num_hidden_layers": 2, "num_heads": 4, "head_dim": 8, "n_groups": 1}
    model = getattr(transformers, f"{kind}Model")(getattr(transformers, f"{kind}Config")(**sizes)).eval()
    ids = torch.randint(5, 30, (4, 6), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        said = model(ids, output_hidden_states=True)
    first, second, last = hidden_states(model, ids).values()
    words = model.get_input_embeddings()(ids).detach()
    torch.testing.assert_close(first, words)
    torch.testing.assert_close(second, said.hidden_states[0])
    torch.testing.assert_close(last, said.last_hidden_state)
    assert len(layers_of(model, ids)) == 2


def test_what_a_model_reads_is_what_its_forward_takes():
    """MGP-STR has the name of its input from a model of text."""
    settings = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "image_size": [8, 16]}
    model = MgpstrModel(MgpstrConfig(**settings, patch_size=4, distilled=False)).eval()
    assert model.main_input_name == "input_ids" and read_by(model) == "pixel_values"
    assert len(hidden_states(model, torch.rand(4, 3, 8, 16))) == 2


def test_our_own_model_is_probed_on_embeddings():
    made = model("rope")
    found = probe_layers(made, made.words(texts(16)).detach(), **QUICK)
    assert found.to_dict() == probe_layers(made, texts(16), **QUICK).to_dict()


# What is refused.

NOTHING = "is no model, no function and no hidden states; give a tensor (texts, length, d_model), or a list of"
NO_STATES = {
    "no layers": (([],), f"list {NOTHING}"),
    "a name": (("gpt2",), f"str {NOTHING}"),
    "an array": ((np.zeros((8, 5, 4)),), f"ndarray {NOTHING}"),
    "arrays": (([np.zeros((8, 5, 4))],), f"list {NOTHING}"),
    "a number": ((torch.tensor(1.0),), "what was given: torch.float32 of () in place of a layer's states"),
    "integers": ((texts(),), "what was given: torch.int64 of (40, 12) in place of a layer's states"),
    "one position": ((numbers(8, 1, 4),), "they must be floats of shape (8, length, d_model), with a length of at"),
    "other texts": (([numbers(8, 5, 4), numbers(9, 5, 4)],), "torch.float32 of (9, 5, 4) in place of"),
    "three texts": ((numbers(3, 5, 4),), "torch.int64 of (3,); give a tensor with at least 4 along the first axis"),
    "states and ids": ((numbers(8, 5, 4), texts()), "Tensor is no model and no function; give one, or hidden states"),
    "no such layer": (([numbers(8, 5, 4)], None, [1]), "layers=[1], but what was given has layers 0"),
    "other widths": (
        ([numbers(8, 5, 4), numbers(8, 5, 3)],),
        "states of what was given differ in length or width: (5, 4) from layer 0, (5, 3) from layer 1; choose",
    ),
    "no number": (([numbers(8, 5, 4), numbers(8, 5, 4).log()],), "hidden states of layer 1 are NaN or infinite"),
    "nothing to read": ((lambda batch: batch,), "<lambda> reads a tensor, and was given NoneType; give a tensor"),
    "a function of nothing": ((lambda batch: None, texts()), "<lambda> hands out no hidden states"),
    "a function of one text": ((lambda batch: [numbers(1, 5, 4)], texts()), "floats of shape (32, length, d_model)"),
    "a function of words": ((lambda batch: ["a"], texts()), "<lambda>: str in place of a layer's states"),
    "ids of no sound": (
        (Wav2Vec2Model(Wav2Vec2Config(**SOUND)), texts()),
        "Wav2Vec2Model reads input_values, and was given torch.int64 of (40, 12); give floats with at least 4",
    ),
    "sound for two stacks": ((build("whisper"), numbers(8, 4, 12)), "WhisperModel has two stacks of layers"),
}


@pytest.mark.bad_input
@pytest.mark.parametrize("name", NO_STATES)
def test_what_are_no_hidden_states_is_refused(name):
    (made, *rest), piece = NO_STATES[name]
    ids, layers = (*rest, None, None)[:2]
    assert piece in refused(ProbeInputError, probe_layers, made, ids, layers=layers, **QUICK)


@pytest.mark.bad_input
def test_a_model_that_draws_as_it_runs_is_refused():
    """One that shuffles its patches would seem to know no positions."""
    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    made = ViTMAEModel(ViTMAEConfig(image_size=8, patch_size=4, mask_ratio=0.0, **sizes)).eval()
    images = torch.randn(8, 3, 8, 8)
    message = refused(ProbeInputError, probe_layers, made, images, **QUICK)
    assert "ViTMAEModel gives other states each time; give a function" in message

    def fixed(some):
        noise = torch.arange(4.0).expand(len(some), 4)
        return made(some, noise=noise, output_hidden_states=True).hidden_states

    assert probe_layers(fixed, images, **QUICK).length > 1


@pytest.mark.bad_input
def test_a_model_that_reads_more_than_one_thing_is_refused_in_one_line():
    sizes = {
        "hidden_size": 16,
        "intermediate_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "head_dim": 8,
    }
    made = TimesFmModel(TimesFmConfig(**sizes)).eval()
    assert "TimesFmModel cannot be called with" in refused(ProbeInputError, probe_layers, made, torch.randn(8, 32))
    images = torch.randn(8, 3, 9, 9)
    assert "ViTModel cannot be called with this pixel" in refused(ProbeInputError, probe_layers, build("vit"), images)


@pytest.mark.bad_input
@pytest.mark.parametrize("given", [texts(), numbers(8, 12, 16)], ids=["ids", "vectors"])
def test_latents_stand_at_no_position(given):
    """A Perceiver's are told apart without a mistake, whatever it reads."""
    sizes = {"num_latents": 4, "d_latents": 16, "d_model": 16, "num_self_attends_per_block": 1, "vocab_size": 60}
    heads = {"num_self_attention_heads": 2, "num_cross_attention_heads": 2, "qk_channels": 16, "v_channels": 16}
    made = PerceiverForMaskedLM(PerceiverConfig(**sizes, **heads, max_position_embeddings=LENGTH)).eval()
    for model in (made, made.perceiver):
        assert "are those of 4 latents, which stand at no place" in refused(
            ProbeInputError, probe_layers, model, given, **QUICK
        )


@pytest.mark.bad_input
def test_a_stack_that_shortens_is_named_and_its_layers_of_one_length_are_probed():
    sizes = {"vocab_size": 30, "block_sizes": [1, 1], "num_decoder_layers": 1, "d_model": 16, "n_head": 2, "d_head": 8}
    made, ids = FunnelModel(FunnelConfig(**sizes, d_inner=16)).eval(), texts(8, 8, least=4, size=30)
    message = refused(ProbeInputError, probe_layers, made, ids, **QUICK)
    assert "states of FunnelModel differ in length or width: (8, 16) from layer 0, (4, 16) from layer 2;" in message
    assert probe_layers(made, ids, layers=[0, 1], **QUICK).length == 8


BAD = {
    "a list": ({"ids": [[1, 2]]}, "ids are list"),
    "one text": ({"ids": torch.arange(5)}, "ids are torch.int64 of (5,)"),
    "numbers": ({"ids": torch.ones(8, 4)}, "ids are torch.float32"),
    "booleans": ({"ids": torch.ones(8, 4, dtype=torch.bool)}, "ids are torch.bool"),
    "too few texts": ({"ids": texts(3)}, "3 texts of 12 tokens are too few; give at least 4 of at least 2"),
    "texts of one token": ({"ids": texts(8, 1)}, "8 texts of 1 tokens"),
    "an unknown word": ({"ids": texts() + VOCABULARY}, "is not among the model's 60 words"),
    "a negative word": ({"ids": texts() - VOCABULARY}, "must not be negative"),
    "a text too long": ({"ids": texts(8, LENGTH + 1)}, "length is 13, but position_scheme.weight has 12"),
    "one other text": ({"test_ids": texts(1)}, "1 texts of 12 tokens"),
    "other lengths": ({"test_ids": texts(8, 5)}, "texts of 12 cannot be tested by texts of 5"),
    "a layer too far": ({"layers": [3]}, "layers=[3], but Transformer has layers 0 (embeddings) to 2"),
    "a layer twice": ({"layers": [1, 1]}, "list some, each once"),
    "no layer": ({"layers": []}, "layers=[]"),
    "a layer by name": ({"layers": ["first"]}, "layers=['first']"),
    "half a step": ({"steps": 0.5}, "steps is 0.5"),
    "no word on the control": ({"control": None}, "control is None"),
    "a bad seed": ({"seed": -1}, "seed is -1"),
}


@pytest.mark.bad_input
@pytest.mark.parametrize("name", BAD)
def test_bad_options_are_refused(name):
    options, piece = BAD[name]
    assert piece in refused(ProbeInputError, probe_layers, model("learned"), **{"ids": texts()} | QUICK | options)


@pytest.mark.bad_input
def test_padding_is_refused():
    ids = texts(8, 5, least=4, size=30)
    ids[3, 4] = 1
    assert "holds id 1, which pads; give texts of one length" in refused(
        ProbeInputError, probe_layers, build("roberta"), ids
    )


@pytest.mark.bad_input
@pytest.mark.parametrize(("kind", "piece"), [("bart", "has two stacks"), ("vit", "reads pixel_values")])
def test_a_model_without_one_stack_that_reads_words_is_refused(kind, piece):
    assert piece in refused(ProbeInputError, probe_layers, build(kind), texts(8, 5, least=4, size=30))


@pytest.mark.bad_input
@pytest.mark.parametrize("length", [0, -1, 2.0, True])
@pytest.mark.parametrize("error", [random_guess_error, middle_guess_error])
def test_a_length_that_cannot_be_meant_is_refused(error, length):
    assert "length is" in refused(ProbeInputError, error, length)


def test_damaged_weights_are_named():
    made = model()
    torch.nn.init.constant_(made.layers[1].feed_forward[0].weight, math.nan)
    assert list(hidden_states(made, texts(4), [0, 1])) == [0, 1]
    assert "hidden states of layer 2 are NaN" in refused(ProbeInputError, probe_layers, made, texts(), **QUICK)
