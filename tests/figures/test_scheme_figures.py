"""What the pictures of schemes show is what the schemes do."""

import math

import pytest
import torch
from refusals import refused

from posembed import scheme, sinusoidal
from posembed.encodings import FIRE, KERPLE, Shaw
from posembed.errors import EncodingInputError, FigureInputError
from posembed.figures import (
    added_maps,
    bias_curves,
    counted_map,
    damping_curves,
    frequency_curves,
    logit_maps,
    weight_maps,
)

PAST = torch.arange(-20, 1)


def made(name, causal=True, **options):
    return scheme(name, d_model=16, n_heads=2, n_positions=32, causal=causal, options={name: options})


def shown(figure, panel=0):
    """The matrix of a panel; NaN where a cell is masked."""
    values = figure.axes[panel].images[0].get_array()
    return torch.tensor(values.filled(math.nan) if hasattr(values, "filled") else values)


def heights(figure, line=0):
    return torch.tensor(figure.axes[0].lines[line].get_ydata())


def test_rows_are_those_that_are_added():
    waves, table = made("sinusoidal"), made("learned")
    figure = added_maps({"waves": waves, "table": table}, n_positions=9, d_model=16, alt="Two tables.")
    torch.testing.assert_close(shown(figure), sinusoidal(9, 16), rtol=0, atol=1e-6)
    assert torch.equal(shown(figure, 1), table.weight.detach()[:9])
    assert [axes.get_title() for axes in figure.axes[:2]] == ["waves", "table"]


def test_frequencies_are_drawn_as_wavelengths():
    trained = made("learnable_sinusoidal")
    trained.frequencies.data[0] = -0.5
    figure = frequency_curves({"fixed": made("sinusoidal"), "trained": trained}, alt="Two curves.")
    expected = 2 * math.pi * 10000.0 ** (torch.arange(0, 16, 2) / 16)
    assert heights(figure).tolist() == pytest.approx(expected.tolist(), rel=1e-6)
    assert heights(figure, 1)[0] == pytest.approx(4 * math.pi)  # a negative frequency has a wavelength too
    assert figure.axes[0].get_yscale() == "log"


def test_curves_are_the_biases_of_the_heads():
    t5 = made("t5")
    figure = bias_curves(t5, offsets=PAST, heads=[2, 1], alt="Two heads.")
    expected = t5.bias_by_offset(PAST).detach()
    assert torch.equal(torch.stack([heights(figure), heights(figure, 1)]).float(), expected[[1, 0]])
    assert figure.axes[0].lines[0].get_xdata().tolist() == PAST.tolist()
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["head 2", "head 1"]


def test_curves_of_several_schemes_have_their_labels():
    schemes = {"log": KERPLE(2), "line": made("alibi")}
    one = bias_curves(schemes, offsets=PAST, heads=[2], alt="Two schemes.")
    assert [text.get_text() for text in one.legends[0].get_texts()] == ["log", "line"]
    assert torch.equal(heights(one, 1).float(), made("alibi").bias_by_offset(PAST)[1])
    two = bias_curves(schemes, offsets=PAST, heads=[1, 2], alt="Four curves.")
    labels = ["log, head 1", "log, head 2", "line, head 1", "line, head 2"]
    assert [text.get_text() for text in two.legends[0].get_texts()] == labels


def test_logits_are_products_of_turned_vectors():
    q, k = torch.randn(2, 8)
    angles = 10000.0 ** (-torch.arange(0, 8, 2) / 8)

    def product(offset):
        turn = torch.polar(torch.ones(4), angles * offset)
        return float((torch.complex(q[:4], q[4:]) * torch.complex(k[:4], k[4:]).conj() * turn).real.sum() / 8**0.5)

    values = shown(logit_maps({"rope": made("rope", causal=False)}, n_positions=7, q=q, k=k, alt="Stripes."))
    expected = [product(m - n) for m in range(7) for n in range(7)]
    assert values.flatten().tolist() == pytest.approx(expected, abs=1e-5)


def test_logits_have_the_bias_and_each_query_its_own():
    shaw, q = Shaw(8, max_distance=2), torch.randn(5, 8)
    values = shown(logit_maps({"shaw": shaw}, n_positions=5, q=q, k=torch.ones(8), alt="A band."))
    offsets = (torch.arange(5) - torch.arange(5)[:, None]).clamp(-2, 2)
    expected = (q[:, None] * (1 + shaw.weight.detach()[offsets + 2])).sum(-1) / 8**0.5
    torch.testing.assert_close(values, expected, rtol=0, atol=1e-5)


def test_what_causal_schemes_do_not_see_is_no_number():
    fire = FIRE(1)
    values = shown(logit_maps({"fire": fire}, n_positions=4, alt="A triangle."))
    at, q = torch.arange(4), torch.zeros(1, 1, 4, 2)
    assert torch.equal(values.isnan(), torch.ones(4, 4).triu(1).bool())
    assert torch.equal(values.nan_to_num(), fire.bias(q, q, at, at)[0].detach().tril())


def test_keys_are_turned_as_keys():
    """xPos damps queries and raises keys; only both together depend on the offset alone."""
    xpos, q, k = made("xpos", scale_base=4.0), torch.randn(8), torch.randn(8)
    values = shown(logit_maps({"xpos": xpos}, n_positions=6, q=q, k=k, alt="Stripes in a triangle."))
    for offset in range(6):
        assert values.diagonal(-offset).tolist() == pytest.approx([float(values[offset, 0])] * (6 - offset), abs=1e-5)
    assert values[0, 1:].isnan().all()


def test_contextual_positions_see_the_past_alone():
    cope, q = made("cope"), torch.randn(4, 8)
    torch.nn.init.normal_(cope.weight)
    k, at = torch.randn(4, 8), torch.arange(4)
    values = shown(logit_maps({"cope": cope}, n_positions=4, q=q, k=k, alt="A triangle."))
    bias = cope.bias(q[None, None], k[None, None], at, at, visible=torch.ones(4, 4).tril().bool())
    expected = (q @ k.T / 8**0.5 + bias[0, 0]).detach().tril()
    torch.testing.assert_close(values.nan_to_num(), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", ["nopos", "alibi"])
def test_weights_are_those_of_equal_contents(name):
    part = scheme(name, n_heads=1)
    figure = weight_maps(part, n_positions=5, alt="Two panels.")
    assert [axes.get_title() for axes in figure.axes] == ["bidirectional", "causal"]
    offsets = torch.arange(5) - torch.arange(5)[:, None]
    bias = torch.zeros(5, 5) if name == "nopos" else -part.slopes.float() * offsets.abs()
    torch.testing.assert_close(shown(figure), bias.softmax(1), rtol=0, atol=1e-6)
    causal = bias.masked_fill(offsets > 0, -math.inf).softmax(1)
    torch.testing.assert_close(shown(figure, 1).nan_to_num(), causal, rtol=0, atol=1e-6)
    assert [axes.images[0].get_clim() for axes in figure.axes] == [(0, 2.4)] * 2
    assert [axes.get_title() for axes in weight_maps(FIRE(1), n_positions=3, alt="One panel.").axes] == ["causal"]


@pytest.mark.parametrize(("layout", "origin"), [("half", 100), ("interleaved", 0)])
def test_factors_are_those_of_the_formula(layout, origin):
    distances, xpos = torch.tensor([0, 3, 512]), made("xpos", layout=layout, origin=origin)
    figure = damping_curves(xpos, distances=distances, pairs=[3, 0], alt="Two curves.")
    for line, pair in enumerate([3, 0]):
        expected = ((2 * pair / 8 + 0.4) / 1.4) ** (distances / 512)
        assert heights(figure, line).tolist() == pytest.approx(expected.tolist(), rel=1e-6)


@pytest.mark.parametrize("options", [{}, {"fraction": 0.5}, {"layout": "interleaved", "fraction": 0.5}], ids=str)
def test_plain_rotations_damp_nothing(options):
    figure = damping_curves(made("rope", **options), distances=torch.arange(9), pairs=[0, 1], alt="Lines at one.")
    assert heights(figure).tolist() == pytest.approx([1.0] * 9)


def test_what_is_counted_stands_in_the_cells():
    figure = counted_map(made("cope"), ["a", ".", "b", "."], [False, True, False, True], alt="Four tokens.")
    assert shown(figure).nan_to_num(-1).tolist() == [[0, -1, -1, -1], [1, 1, -1, -1], [1, 1, 0, -1], [2, 2, 1, 1]]
    assert [text.get_text() for text in figure.axes[0].texts] == list("0111102211")
    assert [label.get_text() for label in figure.axes[0].get_xticklabels()] == ["a", ".", "b", "."]
    long = counted_map(made("cope"), ["sentence"], [True], alt="One token.")
    assert [each.axes[0].get_xticklabels()[0].get_rotation() for each in (figure, long)] == [0, 90]


def test_numbers_are_readable_on_their_cells():
    """The largest has what is near the middle of the colours, never their end."""
    figure = counted_map(made("cope"), ["a", "b"], [True, True], alt="Two tokens.")
    assert figure.axes[0].images[0].get_clim() == (0, 4.8)
    nothing = counted_map(made("cope"), ["a"], [False], alt="One token that does not count.")
    assert nothing.axes[0].images[0].get_clim() == (0, 2.4)


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: bias_curves(made("rope"), offsets=PAST, alt="x"), "RoPE is no function of the offset; use logit_maps"),
        (lambda: bias_curves(made("t5"), offsets=PAST, heads=[3], alt="x"), "there is no head 3; T5 has 1 to 2"),
        (lambda: bias_curves(made("t5"), offsets=PAST, heads=[0], alt="x"), "there is no head 0; T5 has 1 to 2"),
        (lambda: logit_maps({"x": made("alibi")}, n_positions=3, alt="x"), "ALiBi has 2 heads; draw one made for n_he"),
        # The error of the scheme itself.
        (lambda: logit_maps({"x": made("rope")}, n_positions=3, q=torch.ones(6), alt="x"), "the vectors are 6 wide"),
        (lambda: added_maps({"x": made("sinusoidal")}, n_positions=3, d_model=8, alt="x"), "the vectors are 8 wide"),
    ],
)
def test_what_cannot_be_drawn_is_an_error(draw, message):
    assert message in refused((FigureInputError, EncodingInputError), draw)
