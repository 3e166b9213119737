"""How well positions are readable from each layer."""

import json

import numpy as np
import pytest
import torch
import transformers
from hypothesis import given
from hypothesis import strategies as st
from small_models import build
from transformers import (
    DINOv3ViTConfig,
    DINOv3ViTModel,
    Wav2Vec2Config,
    Wav2Vec2ForCTC,
)

from posembed import Transformer, TransformerConfig
from posembed.layers import layers_of
from posembed.probing import (
    middle_guess_error,
    probe_layers,
    random_guess_error,
)
from posembed.probing.hidden_states import hidden_states
from posembed.probing.layers import fit_network, predict

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


def test_of_two_positions_that_look_alike_one_is_wrong():
    """By one position, wherever it is asked."""
    states = torch.eye(6)[torch.arange(LENGTH) // 2].expand(16, -1, -1)
    (layer,) = probe_layers(states, steps=100).layers
    assert layer.mae == layer.train_mae == layer.median_mae == layer.accuracy == 0.5
    assert layer.interval.low == layer.interval.high == 0.5
    assert np.sort(np.reshape(layer.by_position, (6, 2)), axis=1).tolist() == [[0, 1]] * 6


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
    (likeliest, median), at = predict(torch.nn.Sequential(), logits), torch.arange(n)
    expected = logits.softmax(1) @ (at[:, None] - at).abs().double()
    least = expected.min(dim=1).values
    torch.testing.assert_close(expected.gather(1, median[:, None])[:, 0], least, rtol=1e-12, atol=1e-12)
    assert torch.equal(likeliest, logits.max(dim=1).indices)


def test_many_tokens_are_asked_in_blocks():
    network = fit_network(torch.randn(20, 3), torch.arange(20) % 4, 4, 3, 0)
    states = torch.randn(9000, 3, generator=torch.Generator().manual_seed(0))
    whole = network(states).detach()
    assert torch.equal(predict(network, states)[0], whole.argmax(1))


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


class WithStates(torch.nn.Module):
    def forward(self, x):
        return x.mean(1), [x, x**3]


@pytest.mark.parametrize("kind", ["bert", "own"])
def test_padding_behind_texts_is_neither_fitted_nor_tested(kind):
    """Whatever stands there; and the guesses are those among the positions that texts have."""
    net, n = build("bert") if kind == "bert" else with_table(3.0, causal=False), torch.tensor([LENGTH, 5] * 20)
    mask, ids = (torch.arange(LENGTH) < n[:, None]).long(), texts(least=4, size=30)
    found = probe_layers(net, ids, attention_mask=mask, **QUICK)
    other = probe_layers(net, ids.masked_fill(mask == 0, 0), attention_mask=mask, **QUICK)
    assert str(found) == str(other)
    # Long texts have larger errors and more tokens: an interval of their means would lie below the mean over tokens.
    assert all(each.interval.low <= each.mae <= each.interval.high for each in found.layers)
    positions = np.concatenate([np.arange(each) for each in n[-10:].tolist()])
    distances = abs(positions[:, None] - positions)
    assert found.random_guess == pytest.approx(distances.mean())
    assert found.middle_guess == pytest.approx(distances.mean(axis=0).min())
    assert found.example_predictions.shape[1] == LENGTH and len(found.layers[0].by_position) == LENGTH
    shorter = probe_layers(net, ids, attention_mask=mask.flip(0), **QUICK).example_predictions
    assert (shorter[:, 5:] == -1).all() and (shorter[:, :5] >= 0).all()


def test_no_interval_of_a_distance_begins_below_zero():
    """Long texts that are read without a mistake, and short ones in which nothing can be: some resamples have none."""
    n = torch.tensor([[LENGTH] * 5 + [4] * 2] * 4).flatten()
    states, mask = torch.eye(LENGTH).repeat(len(n), 1, 1), torch.arange(LENGTH) < n[:, None]
    states[n == 4] = 0
    (layer,) = probe_layers(states, attention_mask=mask, steps=100, control=False).layers
    assert 0 == layer.interval.low < layer.mae < layer.interval.high


def test_a_mask_that_hides_nothing_changes_nothing(result):
    again = probe_layers(model(), texts(), attention_mask=torch.ones(40, LENGTH), **QUICK)
    plain = probe_layers(model(), texts(), **QUICK)
    assert again.layers == plain.layers and again.middle_guess == pytest.approx(plain.middle_guess)


def test_states_and_functions_have_padding_too():
    states, mask = torch.randn(20, 8, 4), (torch.arange(8) < 5).expand(20, -1)
    states[..., 0] += 3 * torch.arange(8)
    junk = states.masked_fill(~mask[..., None], torch.nan)
    asked = []
    found = probe_layers(junk, attention_mask=mask, steps=50, control=False)
    given = probe_layers(
        lambda x, attention_mask: asked.append(attention_mask.shape) or [x], states, attention_mask=mask, steps=50
    )
    assert found.errors == given.errors and asked[-1] == (20, 8)


def test_states_may_stand_behind_an_output():
    """As models of one's own hand them out."""
    x = numbers(8, 6, 4)
    expected = probe_layers([x, x**3], steps=2, control=False).errors
    assert probe_layers(WithStates(), x, steps=2, control=False).errors == expected
    assert probe_layers(lambda batch: WithStates()(batch), x, steps=2, control=False).errors == expected


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


def test_our_own_model_is_probed_on_embeddings():
    made = model("rope")
    found = probe_layers(made, made.words(texts(16)).detach(), **QUICK)
    assert found.to_dict() == probe_layers(made, texts(16), **QUICK).to_dict()


def test_layers_in_front_are_a_list_of_layers():
    states = torch.randn(3, 12, 4, 5, generator=torch.Generator().manual_seed(0))
    one, other = (probe_layers(each, steps=3, control=False) for each in (states, list(states)))
    assert one.layers == other.layers and len(one.layers) == 3
