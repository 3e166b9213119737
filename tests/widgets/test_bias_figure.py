"""Figure 5: its tables are the package's own biases, and its JavaScript makes of them what torch does."""

import json
import re

import pytest
import torch
from widget_checks import learned_runs, rows_of, run_tests

from posembed import scheme
from posembed.encodings import FIRE, T5, Shaw
from posembed.widgets import BiasFigure
from posembed.widgets.biases import DECIMALS, QUERY_SEED, _rule

# Half a unit of the last decimal, and a little for decimals that double precision has no exact number for.
ROUNDING = 0.5 * 10**-DECIMALS + 1e-12
OBJECTIVES = ["causal", "bidirectional"]
NAMES = ["Shaw", "T5", "ALiBi", "KERPLE", "FIRE"]
SIZES = {"d_model": 8 * 64, "n_heads": 8}


@pytest.fixture(scope="module")
def default():
    return BiasFigure()


@pytest.fixture(scope="module")
def drawn():
    """What the default figure shows, by name and objective, made here as a user would, in double precision."""
    torch.set_default_dtype(torch.float64)
    try:
        with torch.random.fork_rng():
            torch.manual_seed(0)
            shaw, alibi, kerple = (scheme(name, **SIZES) for name in ("shaw", "alibi", "kerple"))
            fire = scheme("fire", **SIZES, options={"fire": {"threshold": 16.0}})
            t5 = [scheme("t5", n_heads=8, causal=objective == "causal") for objective in OBJECTIVES]
    finally:
        torch.set_default_dtype(torch.float32)
    both = {"Shaw": shaw, "ALiBi": alibi, "KERPLE": kerple}
    forms = {(name, objective): each for name, each in both.items() for objective in OBJECTIVES}
    return forms | {("T5", OBJECTIVES[0]): t5[0], ("T5", OBJECTIVES[1]): t5[1], ("FIRE", "causal"): fire}


@pytest.fixture(scope="module")
def query():
    """The query of each head."""
    generator = torch.Generator().manual_seed(QUERY_SEED)
    return torch.randn(SIZES["n_heads"], 64, generator=generator, dtype=torch.float64)


def biases(form, query, position, last):
    """What the package adds to the logits of the keys 0 .. last, "heads keys", in double precision."""
    by_offset = form.bias_by_offset(torch.arange(last + 1) - position)
    if by_offset is None:
        places = torch.tensor([position]), torch.arange(last + 1)
        bias = form.bias(query[None, :, None], query.new_zeros(1, 8, last + 1, query.shape[-1]), *places)
        by_offset = bias.reshape(8, last + 1)
    return by_offset.detach().double()


def in_state(figure, name, objective, position):
    """What the figure's state says of the same keys, read as its documentation says."""
    forms = next(panel["forms"] for panel in figure.panels if panel["name"] == name)
    tables = (forms.get("both") or forms[objective])["tables"]
    varies = len(tables) > 1
    table = torch.tensor(tables[figure.positions.index(position) if varies else 0], dtype=torch.float64)
    first = figure.positions[-1] - position if not varies else 0
    return table[:, first : first + (position if objective == "causal" else 2 * position) + 1]


@pytest.fixture(scope="module")
def cases(default, drawn, query):
    return [
        {"name": name, "objective": objective, "position": position, "from": -position, "to": last - position}
        | {"biases": (rows := biases(form, query, position, last)).tolist(), "weights": rows.softmax(-1).tolist()}
        for (name, objective), form in drawn.items()
        for position in default.positions
        for last in [position if objective == "causal" else 2 * position]
    ]


def test_the_state_is_the_biases_of_the_package(default, cases):
    for case in cases:
        wanted = torch.tensor(case["biases"], dtype=torch.float64)
        got = in_state(default, case["name"], case["objective"], case["position"])
        assert got.shape == wanted.shape == (8, case["to"] - case["from"] + 1)
        assert (got - wanted).abs().max() <= ROUNDING, case["name"]
    assert {(case["name"], case["objective"]) for case in cases} == {
        (name, objective)
        for name in NAMES
        for objective in OBJECTIVES
        if (name, objective) != ("FIRE", "bidirectional")
    }


def test_what_the_default_figure_holds(default):
    assert [panel["name"] for panel in default.panels] == NAMES
    forms = {
        panel["name"]: {each: len(form["tables"]) for each, form in panel["forms"].items()} for panel in default.panels
    }
    # T5 has buckets of its own for each objective; of these schemes only FIRE looks at the query's position.
    assert forms["T5"] == {"causal": 1, "bidirectional": 1}
    assert forms["FIRE"] == {"causal": len(default.positions)}
    assert all(forms[name] == {"both": 1} for name in ("Shaw", "ALiBi", "KERPLE"))
    assert default.positions == [8, 16, 32, 64, 128]
    assert default.objectives == OBJECTIVES
    assert (default.head, default.position, default.offset) == (3, 64, -20)
    assert (default.bidirectional, default.weights) == (False, False)


def test_shaws_queries_are_no_vector_of_the_scheme(default, query):
    """Drawn from one seed they would be, and the bias would be their square."""
    assert abs(query.std() - 1) < 0.1
    (table,) = default.panels[0]["forms"]["both"]["tables"]
    # Vectors of spread 0.02: so are products with a query of spread 1, over the root of the width.
    assert torch.tensor(table).abs().max() < 5 * 0.02


def test_the_note_is_honest(default):
    pieces = [
        "The schemes are untrained: ",
        "(seed 0)",
        "threshold starts at 16 here, at 512 in its paper",
        "drawn once.",
    ]
    assert [piece for piece in pieces if piece not in default.note] == []
    assert scheme("fire", n_heads=8).start == 512


def test_rules_are_those_of_the_schemes(default, drawn):
    rules = {(panel["name"], each): form["rule"] for panel in default.panels for each, form in panel["forms"].items()}
    assert rules["ALiBi", "both"] == {"kind": "line", "slopes": [2.0**-power for power in range(1, 9)]}
    kerple = drawn["KERPLE", "causal"]
    wanted = {"kind": "log", "scale": kerple.scale.tolist(), "shape": kerple.shape.tolist()}
    assert rules["KERPLE", "both"] == {
        name: pytest.approx(value, abs=ROUNDING) if name != "kind" else value for name, value in wanted.items()
    }


def test_no_number_is_minus_zero_or_longer_than_shown(default):
    tables = json.dumps([form["tables"] for panel in default.panels for form in panel["forms"].values()])
    assert not re.search(r"-0\.0[,\]]", tables)
    assert max(len(decimals) for decimals in re.findall(r"\.(\d+)", tables)) == DECIMALS


def test_without_javascript_it_is_a_table_of_the_same_numbers(drawn, query):
    figure = BiasFigure()
    figure.head, figure.position = 2, 32
    header, *rows = rows_of(figure)
    assert header == ["offset", *NAMES]
    numbers = torch.tensor([[float(cell.replace("−", "-")) for cell in row] for row in rows], dtype=torch.float64)
    offsets = numbers[:, 0].long()
    assert offsets.tolist() == [0, -1, -2, -4, -8, -15, -16, -17, -31, -32]
    wanted = [biases(drawn[name, "causal"], query, 32, 32)[1, 32 + offsets] for name in NAMES]
    assert (numbers[:, 1:] - torch.stack(wanted, dim=1)).abs().max() <= ROUNDING
    assert "Head 2, for a query at position 32" in figure.fallback_html()
    figure.position, figure.bidirectional = 8, True
    rows = rows_of(figure)[1:]
    assert [row[0] for row in rows] == ["0", "−1", "−2", "−4", "−8", "1", "2", "4", "8"]
    assert {row[-1] for row in rows} == {"not defined"}
    assert rows[-1][3] == "−2.0000"


@pytest.fixture(scope="module")
def trained():
    return BiasFigure(learned_runs())


def learned(trained, name, position=128):
    form = next(panel["learned"] for panel in trained.panels if panel["name"] == name)["causal"]
    tables = form["tables"]
    return torch.tensor(tables[trained.positions.index(position) if len(tables) > 1 else 0], dtype=torch.float64)


def test_what_the_models_have_learned_is_shown_first(trained):
    """By the formulas, from the numbers that the runs have stored."""
    assert (trained.trained, trained.n_heads) == (True, 4)
    stored = {
        name: {key: torch.tensor(numbers, dtype=torch.float64) for key, numbers in runs[0].metrics["scheme"].items()}
        for name, runs in zip(NAMES, learned_runs().values(), strict=True)
        if name != "ALiBi"
    }
    distance = torch.arange(128, -1, -1)
    t5 = stored["T5"]["weight"].view(32, 4)[T5(4, causal=True).bucket(-distance)].T
    log = torch.log1p(stored["KERPLE"]["shape"].view(4, 1) * distance)
    kerple = -stored["KERPLE"]["scale"].view(4, 1) * log
    alibi = -torch.tensor([4.0**-power for power in range(1, 5)], dtype=torch.float64)[:, None] * distance
    for name, wanted in (("T5", t5), ("KERPLE", kerple), ("ALiBi", alibi)):
        assert (learned(trained, name) - wanted).abs().max() <= ROUNDING, name
    fire = {name.removeprefix("layers.0."): numbers for name, numbers in stored["FIRE"].items() if "layers.0." in name}
    for position in trained.positions:
        distance = torch.arange(position, -1, -1).double()
        reach = max(512 * float(fire["multiplier"]), position)
        psi = torch.log1p(fire["log_scale"] * distance) / (torch.log1p(fire["log_scale"] * reach) + 1e-6)
        hidden = (psi[:, None] * fire["mlp.0.weight"] + fire["mlp.0.bias"]).relu()
        wanted = (hidden @ fire["mlp.2.weight"].view(4, 32).T + fire["mlp.2.bias"]).T
        assert (learned(trained, "FIRE", position) - wanted).abs().max() <= ROUNDING
    generator = torch.Generator().manual_seed(QUERY_SEED)
    query = torch.randn(4, 16, generator=generator, dtype=torch.float64)
    vectors = stored["Shaw"]["layers.0.weight"].view(33, 16)[16 - torch.arange(128, -1, -1).clamp(max=16)]
    assert (learned(trained, "Shaw") - query @ vectors.T / 4).abs().max() <= ROUNDING


def test_what_no_text_has_reached_is_said(trained):
    firsts = T5(4, causal=True).first_distances
    beyond = int(firsts[firsts >= 64][0])
    assert f"No text reached T5's buckets from distance {beyond} on." in trained.learned_note
    table = learned(trained, "T5")
    # As they were drawn, with a spread of 0.02.
    assert table[:, : 128 - beyond + 1].abs().max() < 0.1 < table[:, 128 - beyond + 1 :].abs().max()


def test_without_javascript_the_learned_numbers_are_shown(trained):
    assert "Head 3 of trained models, for a query at position 64" in trained.fallback_html()
    header, *rows = rows_of(trained)
    place = {row[0]: row for row in rows}["−16"][1 + NAMES.index("T5")]
    assert float(place.replace("−", "-")) == pytest.approx(float(learned(trained, "T5")[2, 128 - 16]), abs=ROUNDING)
    assert header == ["offset", *NAMES]


def buckets(n_buckets, max_distance, causal):
    """T5's buckets at all offsets, up to far beyond the last one's; where it is causal, the future is in the first."""
    t5 = T5(1, causal=causal, n_buckets=n_buckets, max_distance=max_distance)
    offsets = torch.arange(-max_distance - 40, max_distance + 41)
    return {
        "title": f"{n_buckets} buckets up to {max_distance}, {'causal' if causal else 'bidirectional'}",
        "rule": _rule(t5),
        "offsets": offsets.tolist(),
        "wanted": t5.bucket(offsets).tolist(),
    }


def clips(limit):
    """The offsets whose vectors Shaw takes: each vector holds its own."""
    shaw = Shaw(1, max_distance=limit)
    shaw.weight.data = torch.arange(-limit, limit + 1.0)[:, None]
    offsets = torch.arange(-3 * limit, 3 * limit + 1)
    wanted = shaw.relative_vectors(offsets)[:, 0].long()
    return {"limit": limit, "offsets": offsets.tolist(), "wanted": wanted.tolist()}


def shares(threshold, log_scale, position):
    """What FIRE's network reads: with a network that hands on what it reads, this is the bias."""
    fire = FIRE(1, width=1, threshold=threshold, log_scale=log_scale).double()
    for name, parameter in fire.mlp.named_parameters():
        parameter.data.fill_(float("weight" in name))
    # In double precision, as the figure reads it: 0.1 in single precision is another number.
    fire.log_scale.data.fill_(log_scale)
    zeros = torch.zeros(1, 1, position + 1, 1, dtype=torch.float64)
    bias = fire.bias(zeros[:, :, :1], zeros, torch.tensor([position]), torch.arange(position + 1))
    return {"rule": _rule(fire), "position": position, "wanted": bias[0, 0].tolist()}


def test_the_module(default, cases, tmp_path):
    sizes = [(32, 128), (8, 20), (2, 2), (3, 7), (6, 9), (16, 1000)]
    fixtures = {
        "state": default.state(),
        "buckets": [buckets(*each, causal=True) for each in sizes]
        + [buckets(*each, causal=False) for each in sizes if each[0] % 2 == 0 and each[0] >= 4],
        "clips": [clips(limit) for limit in (1, 2, 16)],
        "shares": [
            shares(*each, position=position)
            for each in [(16.0, 0.1), (512.0, 0.1), (3.0, 2.5)]
            for position in (0, 5, 16, 200)
        ],
        "cases": cases,
        "rounding": ROUNDING,
    }
    run_tests("biases", tmp_path, default.source(), fixtures, private="shown, percent, span, account, range, ticks")
