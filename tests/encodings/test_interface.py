"""What every position scheme inherits: the three places and the default bias."""

import pytest
import torch
from small_schemes import tokens, vectors

from posembed import PositionScheme
from posembed.encodings import ALiBi, RoPE, Sinusoidal
from posembed.models import attend


class Idle(PositionScheme):
    blind = True


def test_by_itself_a_scheme_does_nothing():
    x, q, k = tokens()
    positions, idle = torch.arange(7), Idle()
    assert idle.add(x, positions) is x
    assert idle.rotate(q, positions) is q and idle.rotate_keys(k, positions) is k
    assert idle.bias(q, k, positions, positions) is None
    assert idle.bias_by_offset(positions) is None and idle.score_mod() is None
    assert idle.layer(3) is idle and not idle.biased
    assert idle.objectives == {"causal", "bidirectional"}


class Twice(ALiBi):
    def bias(self, *given):
        return 2 * super().bias(*given)


class TwiceAgain(Twice):
    def bias_by_offset(self, offsets):
        return 2 * ALiBi(2).bias_by_offset(offsets)


@pytest.mark.parametrize("kind", [Twice, TwiceAgain])
def test_a_subclass_has_its_own_bias_wherever_attention_looks(kind):
    """Positions of one text are asked for offsets, those of a batch for the bias."""
    _, q, k = tokens(5)
    at, v = torch.arange(5), k.roll(1, -1)
    expected = 2 * ALiBi(2).bias(q, k, at, at)
    whole = torch.softmax(q @ k.mT / q.shape[-1] ** 0.5 + expected, -1) @ v
    for positions in (at, at.expand(len(q), 5)):
        found = attend(q, k, v, causal=False, scheme=kind(2), positions=positions, key_positions=positions)
        torch.testing.assert_close(found, whole)


def test_parts_of_a_hook_and_other_methods_may_have_names_of_their_own():
    class Mine(PositionScheme):
        def rotate(self, x, positions):
            return x

        def rotated(self, x):
            return x

        def bias_of(self, distance): ...

        def bucket(self, distance): ...

        def _bias(self, distance): ...

    Mine()


@pytest.mark.parametrize("made", [Sinusoidal(8), RoPE(8, layout="interleaved")], ids=repr)
def test_a_scheme_can_be_mapped_over_positions(made):
    x, positions = vectors(5, 8), torch.stack([torch.arange(5), torch.arange(5) + 9])
    act = made.add if isinstance(made, Sinusoidal) else made.rotate
    together = torch.vmap(lambda p: act(x, p))(positions)
    for row in range(2):
        torch.testing.assert_close(together[row], act(x, positions[row]), rtol=0, atol=1e-6)
