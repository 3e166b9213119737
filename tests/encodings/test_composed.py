"""Several schemes in one, schemes that differ from layer to layer, and their bias as a hook of FlexAttention."""

import pytest
import torch
from small_schemes import bias, build, tokens, vectors

from posembed.encodings import (
    FIRE,
    KERPLE,
    T5,
    ALiBi,
    Composed,
    CoPE,
    Learned,
    NoPos,
    OnLayers,
    PerLayer,
    RoPE,
    Shaw,
    XPos,
)


def test_additions_and_rotations_come_one_after_the_other():
    x, q, k = tokens()
    positions = torch.arange(7) + 3
    learned, sinusoidal, rope, xpos = build("learned"), build("sinusoidal"), build("rope"), build("xpos")
    made = learned + sinusoidal + rope + xpos
    assert torch.equal(made.add(x, positions), sinusoidal.add(learned.add(x, positions), positions))
    assert torch.equal(made.rotate(q, positions), xpos.rotate(rope.rotate(q, positions), positions))
    assert torch.equal(made.rotate_keys(k, positions), xpos.rotate_keys(rope.rotate(k, positions), positions))
    assert not made.biased and made.bias(q, k, positions, positions) is None


def test_a_sum_turns_what_has_its_tokens_on_another_axis():
    _, q, k = tokens()
    at, made = torch.arange(7), build("rope") + build("alibi") + build("xpos")
    assert torch.equal(made.rotate(q.transpose(1, 2), at, seq_dim=1).transpose(1, 2), made.rotate(q, at))
    assert torch.equal(made.rotate_keys(k.transpose(1, 2), at, seq_dim=1).transpose(1, 2), made.rotate_keys(k, at))


def test_biases_are_summed():
    _, q, k = tokens()
    positions, key_positions = torch.arange(7) + 3, torch.arange(7)
    parts = [build(kind) for kind in ("t5", "alibi", "shaw", "rope", "cope", "kerple", "fire", "forgetting")]
    expected = sum(bias(part, q, k, positions, key_positions) for part in parts if not isinstance(part, RoPE))
    # The same numbers, summed in the same order; only (batch, ...) and (heads, ...) meet in another place.
    made = Composed(*parts)
    torch.testing.assert_close(bias(made, q, k, positions, key_positions), expected, rtol=0, atol=1e-5)
    assert made.reads_mask and not Composed(*parts[:4]).reads_mask


def test_biases_of_offsets_are_summed_where_all_parts_have_one():
    offsets = torch.arange(-9, 4)
    t5, alibi = build("t5"), build("alibi")
    expected = t5.bias_by_offset(offsets) + alibi.bias_by_offset(offsets)
    assert torch.equal((t5 + build("rope") + alibi).bias_by_offset(offsets), expected)
    for other in ("shaw", "fire", "cope", "forgetting"):
        assert (alibi + build(other)).bias_by_offset(offsets) is None
    assert (build("rope") + build("learned")).bias_by_offset(offsets) is None


def test_what_is_composed_is_taken_apart():
    rope, t5, learned, alibi = RoPE(8), T5(2, causal=True), Learned(8, 16), ALiBi(2)
    made = (rope + t5) + (learned + alibi)
    assert list(made) == [rope, t5, learned, alibi] and list(made.parts) == list(made)
    assert list(Composed(Composed(Composed(rope)), t5)) == [rope, t5]


def test_objectives_are_those_of_all_parts():
    both, causal = frozenset({"causal", "bidirectional"}), frozenset({"causal"})
    assert (RoPE(8) + Learned(4, 16)).objectives == both
    assert (RoPE(8) + T5(2, causal=False)).objectives == both
    for part in (XPos(8), FIRE(2), CoPE(8), T5(2, causal=True)):
        assert (RoPE(8) + part).objectives == causal


def test_gates_are_read_by_the_part_that_has_some():
    x, forgetting = vectors(2, 7, 16), build("forgetting")
    made = build("rope") + forgetting + build("alibi")
    assert made.gated and torch.equal(made.gates(x), forgetting.gates(x))
    assert not (build("rope") + build("cope")).gated and (build("rope") + build("cope")).gates(x) is None


# Layers.


def test_the_layer_of_a_composition_is_the_composition_of_its_layers():
    shaws, mixed = PerLayer([Shaw(8), Shaw(8)]), OnLayers(RoPE(8), [1], n_layers=2)
    made = shaws + mixed + ALiBi(2)
    first, second = made.layer(0), made.layer(1)
    shared = RoPE(8) + ALiBi(2)
    assert second.layer(0) is second and shared.layer(0) is shared.layer(99) is shared
    assert [type(part) for part in first] == [Shaw, NoPos, ALiBi]
    assert [type(part) for part in second] == [Shaw, RoPE, ALiBi]
    assert second.parts[0] is shaws.layers[1] and second.parts[1] is mixed.scheme
    _, q, k = tokens(3)
    positions = torch.arange(3)
    assert torch.equal(first.rotate(q, positions), q)
    assert torch.equal(second.rotate(q, positions), RoPE(8).rotate(q, positions))
    assert first.bias(q, k, positions, positions).shape == (2, 2, 3, 3)


def test_on_layers_gives_the_scheme_to_some_layers():
    rope = RoPE(8)
    mixed = OnLayers(rope, (i for i in (0, 2)), n_layers=4)
    assert [mixed.layer(i) is rope for i in range(4)] == [True, False, True, False]
    assert isinstance(mixed.layer(3), NoPos)
    assert OnLayers(XPos(8), [0], n_layers=1).objectives == {"causal"}
    assert OnLayers(RoPE(8, axes=[4, 4]), [0], n_layers=1).n_axes == 2


@pytest.mark.parametrize("wrap", [lambda s: OnLayers(s, [], n_layers=2), lambda s: PerLayer([s, Learned(9, 16)])])
def test_what_is_added_to_the_embeddings_is_added_once_for_all_layers(wrap):
    x, _, _ = tokens()
    learned = build("learned")
    assert torch.equal(wrap(learned).add(x, torch.arange(7)), learned.add(x, torch.arange(7)))


# The hook.

HOOKED = {
    "alibi": lambda: ALiBi(3),
    "t5": lambda: T5(3, causal=True, n_buckets=6, max_distance=9),
    "t5, bidirectional": lambda: T5(3, causal=False, n_buckets=8, max_distance=6),
    # The last bucket begins at max_distance itself and not before.
    "t5, few buckets": lambda: T5(3, causal=True, n_buckets=4, max_distance=3),
    "kerple": lambda: KERPLE(3),
    "kerple, power": lambda: KERPLE(3, kernel="power"),
    "a composition": lambda: ALiBi(3) + T5(3, causal=False) + RoPE(8) + KERPLE(3),
    "a composition of one bias": lambda: Learned(4, 24) + T5(3, causal=True),
}


@pytest.mark.parametrize("make", HOOKED.values(), ids=HOOKED)
def test_the_hook_is_the_bias_entry_by_entry(make):
    torch.manual_seed(0)
    made, score = make(), vectors(3, 11, 13)
    q, k = vectors(1, 3, 11, 8), vectors(1, 3, 13, 8)
    positions, key_positions, head = torch.arange(11), torch.arange(13), torch.arange(3)
    hook = made.score_mod()
    hooked = hook(score, torch.tensor(0), head[:, None, None], positions[:, None], key_positions)
    expected = score + made.bias(q, k, positions, key_positions)
    # In a composition the parts are added one by one to the score, which rounds differently.
    torch.testing.assert_close(hooked, expected, rtol=0, atol=1e-6)
    one = hook(score[2, 4, 9], torch.tensor(0), torch.tensor(2), torch.tensor(4), torch.tensor(9))
    torch.testing.assert_close(one, expected[2, 4, 9], rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    "kind", ["nopos", "learned", "sinusoidal", "rope", "xpos", "shaw", "fire", "cope", "forgetting"]
)
def test_no_hook_where_there_is_no_bias_or_more_than_an_offset_matters(kind):
    assert build(kind).score_mod() is None
    assert (build(kind) + build("alibi")).score_mod() is None or not build(kind).biased


class Steeper(ALiBi):
    def bias_by_offset(self, offsets):
        return 3 * super().bias_by_offset(offsets)


def test_a_hook_is_not_inherited_by_another_bias():
    assert ALiBi(3).score_mod() is not None
    assert Steeper(3).score_mod() is None and (Steeper(3) + ALiBi(3)).score_mod() is None
