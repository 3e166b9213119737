"""What a model loses where the position in a layer's states is changed, on models whose loss is known."""

import pytest
import torch
import transformers
from refusals import refused
from small_models import build

from posembed import TransformerConfig
from posembed.errors import ProbeInputError
from posembed.layers import ablate, depth_profile, next_token_loss
from posembed.layers.ablation import _swapped, changed, layers_of
from posembed.models import LanguageModel
from posembed.probing.hidden_states import states_of

WORDS, LENGTH, WIDTH = 20, 8, 16


def texts(n=40, seed=0, length=LENGTH):
    return torch.randint(2, WORDS, (n, length), generator=torch.Generator().manual_seed(seed))


def language_model(scheme="learned", **options):
    torch.manual_seed(0)
    sizes = {"d_model": WIDTH, "n_heads": 2, "n_layers": 2, "n_positions": LENGTH}
    return LanguageModel(TransformerConfig(WORDS, scheme=scheme, causal=True, **(sizes | options))).eval()


def one_direction(size=3.0):
    """A model whose rows are multiples of one vector: projecting that out leaves nothing of them."""
    model = language_model()
    direction = torch.nn.functional.normalize(torch.randn(WIDTH), dim=0)
    model.transformer.position_scheme.weight.data = size * torch.linspace(-1, 1, LENGTH)[:, None] * direction
    return model


def add_nothing(model):
    """Layers that leave their states as they are."""
    for layer in model.transformer.layers:
        for last in (layer.attention.output, layer.feed_forward[2]):
            torch.nn.init.zeros_(last.weight)


def loss_with(model, rows, ids):
    model.transformer.position_scheme.weight.data = rows
    return next_token_loss(model, ids).mean().item()


@torch.inference_mode()
def test_projecting_out_all_there_is_of_position_is_as_if_no_row_had_been_added():
    model, ids = one_direction(), texts(32, seed=1)
    rows = model.transformer.position_scheme.weight.data.clone()
    before = next_token_loss(model, ids).mean().item()
    project_out = ablate(model, texts(400), ids, layers=[0])[0][0]
    assert project_out.n_directions == 1
    # All states get the mean of all along that direction; words have next to none there on average.
    along = rows[-1] / rows[-1].norm()
    words = model.transformer.words.weight
    model.transformer.words.weight.data = words - (words @ along)[:, None] * along
    mean = (words[texts(400)].mean(dim=(0, 1)) @ along) * along
    flat = loss_with(model, mean.expand(LENGTH, -1), ids)
    assert project_out.cost == pytest.approx(flat - before, abs=2e-3)


@torch.inference_mode()
def test_a_swap_is_as_if_the_rows_had_been_exchanged():
    model, ids = language_model(), texts(32, seed=1)
    rows = torch.randn(LENGTH, WIDTH)
    before = loss_with(model, rows, ids)
    swap = ablate(model, texts(2000), ids, layers=[0])[0][2]
    assert swap.kind == "swap"
    # The means have a little of the words in them.
    assert swap.cost == pytest.approx(loss_with(model, rows.roll(-LENGTH // 2, 0), ids) - before, abs=0.02)


@pytest.mark.parametrize(("n", "order"), [(6, [3, 4, 5, 0, 1, 2]), (7, [3, 4, 5, 0, 1, 2, 6]), (1, [0])])
def test_a_swap_exchanges_two_halves_and_the_last_of_an_odd_number_stays(n, order):
    rows = torch.arange(n)[:, None].float()
    assert _swapped(rows)(rows[None]).flatten().tolist() == order


@torch.inference_mode()
def test_exchanged_between_texts_position_stays_and_words_go():
    """Words that have nothing in the direction of position lose nothing; those that have, have it from another text."""
    model, ids = one_direction(), texts(33, seed=1)
    rows, words = model.transformer.position_scheme.weight.data, model.transformer.words.weight
    along = rows[-1] / rows[-1].norm()
    words.data -= (words @ along)[:, None] * along
    project_out, _, _, exchange = ablate(model, texts(400), ids, layers=[0])[0]
    assert (exchange.kind, exchange.n_directions) == ("exchange", 1)
    assert abs(exchange.cost) < 1e-5 < 1e-3 < abs(project_out.cost)
    # The same words at each place, and two of them that differ in that direction: texts change places there.
    words.data[2:4] += torch.tensor([[2.0], [5.0]]) * along
    one, other = torch.full((2, LENGTH), 2), torch.full((1, LENGTH), 3)
    seen = []

    def loss(its_model):
        seen.append(states_of(its_model, torch.cat([one, other]))[1] @ along)
        return seen[-1].mean(dim=1)

    add_nothing(model)
    with_both = torch.randint(2, 4, (400, LENGTH), generator=torch.Generator().manual_seed(2))
    ablate(model, with_both, torch.cat([one, other]), layers=[0], loss=loss)
    before, exchanged = seen[0], seen[-3]
    torch.testing.assert_close(exchanged, before.roll(1, 0), atol=0.05, rtol=0)


def test_a_model_whose_loss_is_of_position_loses_what_a_change_of_other_directions_does_not_cost():
    """At each position another word comes next, and the model knows it by the row alone."""
    model = language_model(d_model=32, n_heads=2)
    rows, words = model.transformer.position_scheme.weight, model.transformer.words.weight
    torch.nn.init.orthogonal_(rows)
    rows.data *= 3
    add_nothing(model)
    words.data *= 0.1
    ids = (torch.arange(LENGTH) + 3).repeat(60, 1)
    words.data[ids[0, 1:]] += rows.data[: LENGTH - 1]
    found = ablate(model, ids + 1, ids[:16], seed=3)
    assert [*found] == [0, 1, 2]
    for layer in found.values():
        for each in layer[:3]:
            assert each.difference_interval.low > 0
        # All texts are the same one.
        assert layer[3].cost == 0
    assert ablate(model, ids + 1, ids[:16], seed=3) == found


def test_a_loss_of_ones_own_and_tokens_that_stay():
    model = language_model()
    seen = []

    def loss(its_model):
        seen.append(states_of(its_model, texts(4, seed=1))[-1])
        return seen[-1].square().mean(dim=(1, 2))

    with torch.inference_mode():
        ablate(model, texts(40), texts(4, seed=1), layers=[0], loss=loss, skip=LENGTH - 2)
    # Causal: nothing before the changed tokens can know of the change.
    for changed_states in seen[1:]:
        torch.testing.assert_close(changed_states[:, : LENGTH - 2], seen[0][:, : LENGTH - 2])
    assert any(not torch.equal(each, seen[0]) for each in seen[1:])


MODELS = ("bert", "gpt2", "vit")


def made(name):
    layers = {"n_layer": 2} if name == "gpt2" else {"num_hidden_layers": 2}
    return build(name, **layers)


@pytest.mark.parametrize("name", MODELS)
@torch.inference_mode()
def test_the_states_of_models_of_transformers_are_changed_where_they_should_be(name):
    model = made(name)
    inputs = torch.randn(3, 3, 8, 8) if name == "vit" else texts(3) + 4
    before = states_of(model, inputs)
    stack = layers_of(model)
    assert len(stack) == 2
    for layer in range(3):
        noted = []
        with changed(stack, layer, lambda states, noted=noted: noted.append(states) or states):
            same = states_of(model, inputs)
        for one, other in zip(before, same, strict=True):
            torch.testing.assert_close(one, other)
        # The last hidden state may be behind a final norm.
        if layer < 2:
            torch.testing.assert_close(noted[0], before[layer])
        with changed(stack, layer, torch.zeros_like):
            assert not torch.allclose(states_of(model, inputs)[-1], before[-1])


@pytest.mark.parametrize("name", MODELS)
def test_a_profile_of_models_of_transformers(name):
    model = made(name)
    inputs = torch.randn(24, 3, 8, 8) if name == "vit" else texts(24) + 4
    found = depth_profile(model, inputs, skip=1 if name != "gpt2" else 0)
    assert len(found.layers) == 3
    assert (found.layers[0].token is None) == (name == "vit")
    assert all(len(layer.ablations) == 4 for layer in found.layers)
    assert found.layers[0].left is not None or name == "vit"


def xlm(name="XLM", n_layers=2):
    """A model that keeps the parts of its layers in lists side by side."""
    sizes = {"vocab_size": 30, "emb_dim": 16, "n_layers": n_layers, "n_heads": 2, "max_position_embeddings": LENGTH}
    return getattr(transformers, f"{name}Model")(getattr(transformers, f"{name}Config")(**sizes)).eval()


def funnel():
    """A model whose list of layers is one of lists, none of which is called."""
    sizes = {"vocab_size": 30, "block_sizes": [1, 1], "d_model": 16, "n_head": 2, "d_head": 8, "d_inner": 16}
    return transformers.FunnelBaseModel(transformers.FunnelConfig(**sizes)).eval()


def xlnet():
    """A model whose layers are given states with the batch on the second axis."""
    return build("xlnet", n_layer=2)


class Pair(tuple):
    """What has a name for each part."""

    attention = property(lambda self: self[0])


class Named(torch.nn.Module):
    def forward(self, states):
        return Pair([states, None])


class ReadsNames(torch.nn.Module):
    """A model whose layers give what `changed` cannot make."""

    def __init__(self):
        super().__init__()
        self.config = transformers.PretrainedConfig(num_hidden_layers=1)
        self.layers = torch.nn.ModuleList([Named()])

    def forward(self, ids):
        states = torch.nn.functional.one_hot(ids).float()
        return [states, self.layers[0](states).attention]


@pytest.mark.parametrize(
    "model",
    [xlm(), xlm("Flaubert"), xlm(n_layers=1), funnel(), xlnet(), ReadsNames()],
    ids=lambda model: type(model).__name__,
)
def test_layers_that_do_not_hand_on_the_states_of_the_model_are_refused(model):
    kept = [(module, module.__dict__.get("forward")) for module in model.modules()]
    message = refused(ProbeInputError, ablate, model, texts() + 4, texts() + 4)
    assert f"the layers of {type(model).__name__} are not found" in message and "ablations=False" in message
    assert all(module.__dict__.get("forward") is forward for module, forward in kept)


def test_a_profile_of_a_model_whose_layers_are_not_found_has_all_but_ablations():
    found = depth_profile(xlm(), texts() + 4, ablations=False)
    assert found.layers[0].left is not None and not found.layers[0].ablations


def test_in_texts_of_two_tokens_no_probe_looks_for_the_token_before():
    first = depth_profile(made("bert"), texts(length=2) + 4, ablations=False).layers[0]
    assert first.before is None and first.token is not None


def test_a_table_of_zeros_leaves_nothing_to_look_for():
    model = made("bert")
    torch.nn.init.zeros_(model.embeddings.position_embeddings.weight)
    assert all(layer.left is None for layer in depth_profile(model, texts() + 4, ablations=False).layers)


def test_lists_side_by_side_are_not_taken_for_the_layers_and_lists_inside_of_one_do_not_matter():
    assert "are not found" in refused(ProbeInputError, layers_of, xlm())
    sizes = {"num_hidden_layers": 2, "num_key_value_heads": 2, "qk_layernorm": True}
    config = transformers.StableLmConfig(**sizes, vocab_size=30, hidden_size=16, num_attention_heads=2)
    model = transformers.StableLmModel(config).eval()
    assert layers_of(model) is layers_of(model, texts()) is model.layers


def test_a_layer_that_returns_a_list_is_changed():
    model = build("gpt", n_layer=2)
    assert [*ablate(model, texts(), texts(4), n_draws=1)] == [0, 1, 2]


def deit():
    """A model with two tokens in front of four patches."""
    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    return transformers.DeiTModel(transformers.DeiTConfig(**sizes, image_size=8, patch_size=4)).eval()


def registers():
    """A model with [CLS] and two registers there."""
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "num_register_tokens": 2}
    config = transformers.Dinov2WithRegistersConfig(**sizes, image_size=8, patch_size=4)
    return transformers.Dinov2WithRegistersModel(config).eval()


@pytest.mark.bad_input
@pytest.mark.parametrize(("model", "n_in_front"), [(deit(), 2), (registers(), 3)], ids=["deit", "registers"])
def test_no_token_in_front_is_taken_for_a_patch(model, n_in_front):
    images = torch.rand(12, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    for call in (depth_profile, lambda model, images, skip: ablate(model, images[:8], images[8:], skip=skip)):
        for skip in range(1, n_in_front):
            message = refused(ProbeInputError, call, model, images, skip=skip)
            assert f"skip is {skip} of" in message and f"of the {n_in_front} in front of patches all or none" in message
        call(model, images, skip=n_in_front)
    assert depth_profile(model, images, skip=n_in_front, ablations=False).length == 4
