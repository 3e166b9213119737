"""Positions that are added again, at the input of every layer."""

import pytest
import torch

from posembed import Transformer, TransformerConfig
from posembed.models import KeyValueCache, drop_positions
from posembed.probing import identical_word_attention

VOCAB, WIDTH, LAYERS, LENGTH = 50, 32, 3, 16
AGAIN = ("every layer", "layers anew")


def model(scheme="learned", added="every layer", **options):
    sizes = {"n_layers": LAYERS, "d_model": WIDTH, "n_heads": 4, "n_positions": LENGTH}
    torch.manual_seed(0)
    return Transformer(TransformerConfig(VOCAB, scheme=scheme, positions_added=added, **(sizes | options))).eval()


def texts(n=3, length=9):
    return torch.randint(VOCAB, (n, length), generator=torch.Generator().manual_seed(1))


def without_updates(made):
    """Layers hand on what they get."""
    for layer in made.layers:
        for last in (layer.attention.output, layer.feed_forward[2]):
            torch.nn.init.zeros_(last.weight)
    return made


@pytest.mark.parametrize(("added", "times"), [("input", [1, 1, 1]), ("every layer", [1, 2, 3])])
@pytest.mark.parametrize("scheme", ["learned", "sinusoidal"])
def test_a_row_is_there_as_often_as_it_was_added(scheme, added, times):
    made = without_updates(model(scheme, added))
    words, states = made.words(texts()), made.hidden_states(texts())
    rows = made.position_scheme.add(torch.zeros_like(words), torch.arange(9))
    torch.testing.assert_close(states[0], words + rows)
    # The last state is normalised.
    for state, n in zip(states[1:-1], times, strict=False):
        torch.testing.assert_close(state, words + n * rows)
    torch.testing.assert_close(states[-1], made.norm(words + times[-1] * rows))


def test_each_layer_adds_rows_of_its_own():
    made = without_updates(model("learned", "layers anew"))
    tables = [made.position_scheme, *made.added_anew]
    for number, table in enumerate(tables):
        torch.nn.init.normal_(table.weight, std=10.0**number)
    words, rows = made.words(texts()), [table.weight[:9] for table in tables]
    torch.testing.assert_close(made.hidden_states(texts())[2], words + rows[0] + rows[1])
    torch.testing.assert_close(made(texts()), made.norm(words + sum(rows)))


def test_all_three_start_from_the_same_weights_and_those_that_add_again_as_one_function():
    once, again, anew = (model("learned", added) for added in ("input", *AGAIN))
    assert torch.equal(again(texts()), anew(texts())) and not torch.allclose(once(texts()), again(texts()), atol=1e-3)
    state = once.state_dict()
    assert all(torch.equal(state[name], value) for name, value in again.state_dict().items())
    assert {name for name in anew.state_dict() if name not in state} == {f"added_anew.{n}.weight" for n in range(2)}


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("added", AGAIN)
def test_a_cache_gives_what_whole_texts_give(added, norm):
    made = model(added=added, norm=norm)
    caches = [KeyValueCache() for _ in range(LAYERS)]
    parts = torch.cat([made(part, caches=caches) for part in texts().split([4, 1, 4], dim=1)], dim=1)
    assert torch.allclose(parts, made(texts()), atol=2e-5)


@pytest.mark.parametrize("added", AGAIN)
def test_dropped_positions_are_gone_from_every_layer(added):
    made = model(added=added, causal=False)
    drop_positions(made)
    order = torch.randperm(9)
    assert torch.allclose(made(texts()[:, order]), made(texts())[:, order], atol=2e-5)


def test_attention_maps_are_those_of_layers_that_get_their_positions():
    """Identical words differ by their rows alone: what the second layer gets has them twice."""
    made = without_updates(model("learned", "every layer", causal=False))
    found = identical_word_attention(made, layer=1, length=8, words=4)
    once = without_updates(model("learned", "input", causal=False))
    once.position_scheme.weight.data *= 2
    torch.testing.assert_close(found, identical_word_attention(once, layer=1, length=8, words=4))
