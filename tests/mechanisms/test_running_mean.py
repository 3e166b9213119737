"""The variance of what attention gives."""

import numpy as np
import pytest
import torch
from untrained import language_model, random_texts, untrained, with_even_attention

from posembed.mechanisms import attention_variance
from posembed.mechanisms.attention_outputs import _resampled_slopes
from posembed.seeds import generator


def by_hand(model, ids, layer=0):
    """Position by position, from what the layer's attention gives as the model runs."""
    caught = []
    hook = model.layers[layer].attention.register_forward_hook(lambda *given: caught.append(given[-1]))
    model(ids)
    hook.remove()
    out = caught[0].detach().double().numpy()
    return [np.mean([np.var(out[:, t, c]) for c in range(out.shape[2])]) for t in range(ids.shape[1])]


@pytest.mark.parametrize("layer", [0, 1])
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_the_variance_is_over_texts_and_its_slope_that_of_a_line(layer, norm):
    model, ids = untrained("alibi", norm=norm), random_texts(20, 12)
    found, wanted = attention_variance(model, ids, layer=layer), by_hand(model, ids, layer)
    np.testing.assert_allclose(found.variance, wanted, rtol=1e-6)
    slope, _ = np.polyfit(np.log(np.arange(1, 13)), np.log(wanted), 1)
    assert found.slope == pytest.approx(slope, abs=1e-6)
    assert found.low < found.slope < found.high


@pytest.mark.parametrize("seed", range(2))
def test_the_law(seed):
    """Even attention to independent words is a mean of t of them; GPT-2's initialisation is nearly even."""
    ids = random_texts(300, 48, seed=seed)
    even = attention_variance(with_even_attention(untrained(seed=seed)), ids)
    # The interval holds the law in 95 of 100 cases; twice its width in nearly all.
    width = even.high - even.low
    assert abs(even.slope + 1) < width < 0.06
    assert attention_variance(untrained(seed=seed), ids).slope == pytest.approx(even.slope, abs=0.02)


def test_each_resample_has_the_variance_of_its_texts():
    """Its own mean taken off, which few texts show."""
    values, n = np.random.default_rng(0).normal(size=(8, 6, 3)), 8
    counts = generator(0, "texts").multinomial(n, np.full(n, 1 / n), size=500)
    found = _resampled_slopes(values - values.mean(axis=0), 0)
    for k in range(40):
        variance = np.repeat(values, counts[k], axis=0).var(axis=0).mean(axis=1)
        assert found[k] == pytest.approx(np.polyfit(np.log(np.arange(1, 7)), np.log(variance), 1)[0])


def test_it_is_the_same_again_and_leaves_the_model_alone():
    model, ids, state = language_model(dropout=0.5).train(), random_texts(20, 8), torch.get_rng_state()
    found = attention_variance(model, ids)
    assert model.training and not any(layer.attention._forward_hooks for layer in model.transformer.layers)
    assert attention_variance(model.eval(), ids).to_dict() == found.to_dict()
    assert torch.equal(torch.get_rng_state(), state)
    other = attention_variance(model, ids, seed=1)
    assert other.slope == found.slope and (other.low, other.high) != (found.low, found.high)
    assert attention_variance(model.transformer, ids).slope == found.slope
