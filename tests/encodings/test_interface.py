"""What every position scheme inherits: the three places, the default bias, derived buffers, remembered angles."""

import copy
import pickle
import sys
import threading

import pytest
import torch
from small_schemes import BIASING, KINDS, build, tokens, vectors

from posembed import PositionScheme
from posembed.encodings import ALiBi, RoPE, Sinusoidal, Sizes, XPos
from posembed.encodings._angles import LastValues
from posembed.errors import EncodingInputError


class Nearness(PositionScheme):
    """A user's scheme that knows of offsets alone."""

    def bias_by_offset(self, offsets):
        return torch.stack([-offsets.abs().float(), offsets.float()])


class Sign(PositionScheme):
    """A user's scheme that turns: it changes the sign at odd positions."""

    def rotate(self, x, positions):
        sign = 1 - 2 * (positions % 2)
        return x * sign[..., None].to(x.dtype)


class Ramp(PositionScheme):
    """A user's scheme that adds its position to every column."""

    def add(self, x, positions):
        return x + positions[..., None].to(x.dtype)


def test_by_itself_a_scheme_does_nothing():
    x, q, k = tokens()
    positions, idle = torch.arange(7), PositionScheme()
    assert idle.add(x, positions) is x
    assert idle.rotate(q, positions) is q and idle.rotate_keys(k, positions) is k
    assert idle.bias(q, k, positions, positions) is None
    assert idle.bias_by_offset(positions) is None and idle.score_mod() is None
    assert idle.layer(3) is idle and not idle.biased
    assert idle.objectives == {"causal", "bidirectional"}


def test_a_users_bias_by_offset_is_enough_for_the_bias():
    _, q, k = tokens(5)
    bias = Nearness().bias(q[:, :, :2], k, torch.tensor([3, 9]), torch.arange(5))
    assert bias.tolist() == [
        [[-3.0, -2.0, -1.0, 0.0, -1.0], [-9.0, -8.0, -7.0, -6.0, -5.0]],
        [[-3.0, -2.0, -1.0, 0.0, 1.0], [-9.0, -8.0, -7.0, -6.0, -5.0]],
    ]


@pytest.mark.parametrize("dtype", [torch.int8, torch.int16, torch.int32], ids=str)
def test_offsets_of_short_integers_do_not_wrap_around(dtype):
    _, q, k = tokens(2)
    positions = torch.tensor([-100, 100])
    expected = Nearness().bias(q, k, positions, positions)
    assert torch.equal(Nearness().bias(q, k, positions.to(dtype), positions.to(dtype)), expected)
    assert expected[1].tolist() == [[0, 200], [-200, 0]]


@pytest.mark.parametrize("which", ["queries", "keys", "both"])
def test_the_default_bias_of_batches_of_positions_is_that_of_each_row(which):
    _, q, k = tokens(4)
    one, many = torch.arange(4), torch.tensor([[0, 1, 2, 3], [50, 7, 9, 8]])
    positions, key_positions = (one if which == "keys" else many), (one if which == "queries" else many)
    together = Nearness().bias(q, k, positions, key_positions)
    assert together.shape == (2, 2, 4, 4)
    for row in range(2):
        alone = [each[row] if each.ndim > 1 else each for each in (positions, key_positions)]
        assert torch.equal(together[row], Nearness().bias(q[[row]], k[[row]], *alone))


def test_users_schemes_compose():
    x, q, k = tokens(5)
    positions = torch.arange(3, 8)
    all_three = Nearness() + Sign() + Ramp() + ALiBi(2)
    assert torch.equal(all_three.add(x, positions), x + positions[:, None])
    assert torch.equal(all_three.rotate(q, positions)[:, :, 0], -q[:, :, 0])
    assert torch.equal(all_three.rotate_keys(k, positions), all_three.rotate(k, positions))
    parts = [part.bias(q, k, positions, positions) for part in (Nearness(), ALiBi(2))]
    assert torch.equal(all_three.bias(q, k, positions, positions), sum(parts))
    offsets = torch.arange(-4, 5)
    assert torch.equal(
        all_three.bias_by_offset(offsets), sum(p.bias_by_offset(offsets) for p in (Nearness(), ALiBi(2)))
    )
    # Nearness gives no hook, and half of a bias is no bias.
    assert all_three.score_mod() is None


def test_a_scheme_is_biased_when_it_says_one_of_the_two_biases():
    class WithQueries(PositionScheme):
        def bias(self, q, k, positions, key_positions):
            return q @ k.mT

    assert Nearness().biased and WithQueries().biased
    assert not Sign().biased and not Ramp().biased
    assert {kind for kind in KINDS if build(kind).biased} == set(BIASING)


def test_a_scheme_of_one_objective_says_so():
    only = Nearness()
    only.objectives = frozenset({"causal"})
    only.check_objective(True)
    with pytest.raises(
        EncodingInputError, match="Nearness is not defined for a bidirectional model, only for a causal"
    ):
        only.check_objective(False)
    with pytest.raises(EncodingInputError, match="^mine is not defined for a bidirectional model"):
        only.check_objective(False, "mine")


@pytest.mark.parametrize("other", [3, "rope", None, torch.nn.Linear(2, 2)], ids=["int", "str", "None", "Linear"])
def test_only_schemes_can_be_added_to_a_scheme(other):
    with pytest.raises(TypeError, match="unsupported operand"):
        Nearness() + other
    with pytest.raises(TypeError):
        other + Nearness()


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"d_model": 0}, "d_model is 0; it must be a whole number of at least 1"),
        ({"n_heads": -2}, "n_heads is -2; it must be"),
        ({"n_layers": 1.5}, "n_layers is 1.5; it must be"),
        ({"n_positions": True}, "n_positions is True; it must be"),
        ({"d_model": "64"}, "d_model is '64'; it must be"),
        ({"causal": "yes"}, "causal is 'yes'; it must be True or False"),
        ({"d_model": 10, "n_heads": 4}, "d_model is 10, which 4 heads do not divide"),
    ],
    ids=str,
)
def test_sizes_that_no_model_has(sizes, message):
    with pytest.raises(EncodingInputError) as error:
        Sizes(**sizes)
    assert message in str(error.value) and "\n" not in str(error.value)


def test_a_missing_size_is_named():
    with pytest.raises(EncodingInputError, match="^mine needs d_model= and n_positions=$"):
        Sizes(n_heads=2).need("mine", "d_model", "n_heads", "n_positions")
    with pytest.raises(EncodingInputError, match="^mine needs n_heads=$"):
        Sizes(d_model=8).d_head("mine")
    assert Sizes(d_model=8, n_heads=2).d_head("mine") == 4


# What follows from a scheme's numbers.

DERIVED = {"sinusoidal", "sinusoidal, tensor2tensor", "t5", "t5, bidirectional", "alibi"} | {
    kind for kind in KINDS if kind.startswith(("rope", "xpos"))
}


@pytest.mark.parametrize("kind", sorted(DERIVED))
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64], ids=str)
def test_derived_buffers_are_not_rounded_and_not_saved(kind, dtype):
    made, cast = build(kind), build(kind).to(dtype)
    assert dict(made.named_buffers())
    for name, buffer in made.named_buffers():
        assert torch.equal(cast.get_buffer(name), buffer) and cast.get_buffer(name).dtype == buffer.dtype
    assert set(made.state_dict()) == {name for name, _ in made.named_parameters()}


@pytest.mark.parametrize("made", [RoPE(8), Sinusoidal(8), XPos(8), ALiBi(2)], ids=lambda made: type(made).__name__)
def test_a_change_of_format_leaves_derived_buffers_on_their_device(made):
    moved = copy.deepcopy(made).to("meta").to(torch.bfloat16)
    assert {buffer.device.type for buffer in moved.buffers()} == {"meta"}


def test_a_change_of_format_under_another_default_device_leaves_derived_buffers_where_they_are():
    made = RoPE(8)
    with torch.device("meta"):
        made.to(torch.bfloat16)
    assert made.frequencies.device.type == "cpu"


# Angles that are remembered for the next layer.


def test_values_are_computed_once_for_the_same_positions_and_key():
    last, calls = LastValues(), []
    for positions, key in [([0, 1], "a"), ([0, 1], "a"), ([0, 2], "a"), ([0, 2], "b"), ([[0, 2]], "b"), ([0, 1], "a")]:
        get = lambda positions=positions, key=key: calls.append((positions, key)) or (positions, key)
        assert last.get(torch.tensor(positions), (key,), get) == (positions, key)
    assert len(calls) == 5


@pytest.mark.parametrize("kind", ["sinusoidal", "rope", "rope, interleaved", "xpos"])
def test_positions_changed_in_place_are_noticed(kind):
    made, (x, q, _), positions = build(kind), tokens(), torch.arange(7)
    act = lambda which: which.add(x, positions) if kind == "sinusoidal" else which.rotate(q, positions)
    before = act(made)
    positions += 40
    assert torch.equal(act(made), act(build(kind))) and not torch.equal(act(made), before)


@pytest.mark.parametrize("made", [Sinusoidal(8), RoPE(8), RoPE(8, layout="interleaved")], ids=repr)
def test_training_works_after_inference_mode(made):
    x, positions = vectors(2, 5, 8), torch.arange(5)
    act = made.add if isinstance(made, Sinusoidal) else made.rotate
    with torch.inference_mode():
        frozen = act(x, positions)
        assert torch.equal(act(x, positions), frozen)
    leaf = x.clone().requires_grad_()
    result = act(leaf, positions)
    assert torch.equal(result, frozen)
    result.square().sum().backward()  # what inference mode made cannot be saved for a backward pass
    assert leaf.grad is not None


@pytest.mark.parametrize("order", [(torch.float32, torch.float64), (torch.float64, torch.float32)], ids=str)
def test_another_format_does_not_get_the_angles_of_the_last(order):
    rope, positions = RoPE(8), torch.arange(5) + 1000
    for dtype in order:
        x = vectors(5, 8, dtype=dtype)
        assert torch.equal(rope.rotate(x, positions), RoPE(8).rotate(x, positions))


def test_other_integers_of_the_same_value_give_the_same_angles():
    rope, x = RoPE(8), vectors(5, 8)
    expected = rope.rotate(x, torch.arange(5))
    for dtype in (torch.int8, torch.int16, torch.int32, torch.int64):
        assert torch.equal(rope.rotate(x, torch.arange(5, dtype=dtype)), expected)


@pytest.mark.parametrize("made", [Sinusoidal(8), RoPE(8, layout="interleaved")], ids=repr)
def test_what_vmap_computed_is_not_remembered(made):
    x, positions = vectors(5, 8), torch.stack([torch.arange(5), torch.arange(5) + 9])
    act = made.add if isinstance(made, Sinusoidal) else made.rotate
    for _ in range(2):
        together = torch.vmap(lambda p: act(x, p))(positions)
        for row in range(2):
            torch.testing.assert_close(together[row], act(x, positions[row]), rtol=0, atol=1e-6)


@pytest.mark.parametrize("kind", ["sinusoidal", "rope", "rope, interleaved", "xpos"])
def test_frequencies_changed_in_place_are_noticed(kind):
    changed, remembering, (x, q, _), positions = build(kind), build(kind), tokens(), torch.arange(7)
    act = lambda which: which.add(x, positions) if kind == "sinusoidal" else which.rotate(q, positions)
    act(remembering)
    for made in (changed, remembering):
        made.frequencies.div_(2)
    assert torch.equal(act(remembering), act(changed))


def test_threads_do_not_get_each_others_angles():
    rope, x, wrong = RoPE(8), vectors(6, 8), []
    expected = [RoPE(8).rotate(x, torch.arange(6) + start) for start in range(4)]

    def work(start):
        for _ in range(200):
            if not torch.equal(rope.rotate(x, torch.arange(6) + start), expected[start]):
                wrong.append(start)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # so that threads meet in the middle of a call
    try:
        threads = [threading.Thread(target=work, args=(start,)) for start in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert not wrong


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda made: pickle.loads(pickle.dumps(made))], ids=["copy", "pickle"]
)
def test_what_is_remembered_is_never_copied_or_saved(copied):
    rope, x = RoPE(8), vectors(5000, 8)
    empty = len(pickle.dumps(rope))
    rope.rotate(x, torch.arange(5000))
    assert len(pickle.dumps(rope)) == empty
    twin = copied(rope)
    assert twin._last is not rope._last
    assert torch.equal(twin.rotate(x, torch.arange(5000)), rope.rotate(x, torch.arange(5000)))
