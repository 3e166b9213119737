"""Figures 8, 9, 11 and 12, one chart: its state is what was given, and its JavaScript is right about it."""

import numpy as np
import pytest
from widget_checks import a_run, assert_refused, rows_of, run_tests

from posembed.similarity import perturbed_bias, properties_of_matrix
from posembed.stats import difference, interval
from posembed.widgets import ComparisonFigure, DepthFigure, DoseFigure, LayerErrorFigure

NAN = float("nan")
RESULTS = {
    "learned": [[1.6, 1.9, 2.1], [1.7, 1.8, NAN], [1.5, 1.95, NAN]],
    "nopos": [[2.9, 3.0, 3.3], [2.8, 3.1, 3.2], [2.95, 3.2, NAN]],
    "alibi": [[1.1, NAN, 1.2], [1.2, NAN, 1.4]],
}
GIVEN = {"title": "Loss by rate", "x": [15, 40, 60], "xlabel": "hidden, %", "ylabel": "loss, nats"}
PROPERTIES = ("monotonicity", "translation_invariance", "symmetry")
DOSES = [0, 24, 48]
RNG = np.random.default_rng(0)
RIGHT = {task: {each: RNG.uniform(0.2, 1, (5, 3)).round(5) for each in PROPERTIES} for task in ("order", "lookup")}


def probed(seeds, n_layers, *, scheme="nopos", watched=(), untrained=True):
    """Runs whose probe is off by the seed and a tenth of the layer, by ten more at each earlier step."""

    def errors(seed, earlier):
        mae = [seed + layer / 10 + 10 * earlier for layer in range(n_layers + 1)]
        return {"mae": mae, "middle_guess": 16.0, "random_guess": 21.3}

    return [
        a_run(
            seed,
            {"layers": errors(seed, 0), "watched": {str(step): errors(seed, 1) for step in watched}}
            | ({"untrained": errors(seed, 2)} if untrained else {}),
            scheme=scheme,
            n_layers=n_layers,
        )
        for seed in seeds
    ]


@pytest.fixture(scope="module")
def comparison():
    return ComparisonFigure(RESULTS, **GIVEN)


@pytest.fixture(scope="module")
def layer_errors():
    groups = {
        "small": {"nopos": probed((1, 2, 3), 4), "alibi": probed((1, 2), 4, scheme="alibi")},
        "watched": {"nopos": probed((1, 2), 4, watched=(47, 750))},
        "larger": {"nopos": probed((2, 3), 6, untrained=False)},
    }
    return LayerErrorFigure(groups, paper={"nopos": [1.25, 0.5, 0.25]}, source="a paper", shown=["nopos"])


@pytest.fixture(scope="module")
def doses():
    return DoseFigure(RIGHT, degrees=DOSES, guesses={"order": 1 / 24, "lookup": 0.25})


def inspected(seed, n_layers):
    states = np.linspace(0, 1, n_layers + 1)
    its = {name: (states + seed / 10).tolist() for name in ("position", "token", "read position", "read token")}
    its |= {"read before": its["token"], "shuffle": its["token"], "shuffle, control": its["position"]}
    its |= {f"{name}, chance": [0.125] for name in its}
    return a_run(seed, {"depth": {"trained": its, "untrained": its}}, n_layers=n_layers)


@pytest.fixture(scope="module")
def depth():
    texts = {
        f"texts, {n} layers": {arm: [inspected(s, n) for s in (1, 2)] for arm in ("none", "input")} for n in (4, 12)
    }
    return DepthFigure(texts)


def test_the_module(comparison, layer_errors, doses, depth, tmp_path):
    samples = [RNG.normal(size=n).round(5).tolist() for n in (1, 2, 3, 5)]
    by_place = [np.array(RESULTS["nopos"])[:, k] - np.array(RESULTS["learned"])[:, k] for k in range(2)]
    lost = [difference(of["order"][:, 2], of["order"][:, 0]) for of in [{"order": RIGHT["order"]["symmetry"]}]]
    fixtures = {
        "comparison": comparison.state(),
        "layers": layer_errors.state(),
        # As a reader chooses symmetry, and its largest dose.
        "doses": doses.state() | {"view": 2, "at": 2},
        "depth": depth.state(),
        "intervals": [[each, ends(interval(each)) if len(each) > 1 else each] for each in samples],
        "differences": [ends(interval(each)) for each in by_place],
        "lost": ends(lost[0]),
        "biases": {name: [perturbed_bias(name, each).tolist() for each in DOSES] for name in PROPERTIES},
    }
    run_tests("chart", tmp_path, comparison.source(), fixtures, private="ticks, flip, lookOf, LOOKS, range, short")


def ends(found):
    return [found.mean, found.low, found.high]


def test_arms_are_written_as_their_schemes_and_keep_their_seeds(comparison):
    (view,) = comparison.views
    assert [(each["name"], each["scheme"]) for each in view["series"]] == [
        ("learned", "learned"),
        ("NoPos", "nopos"),
        ("ALiBi", "alibi"),
    ]
    assert view["series"][0]["seeds"][1] == [1.7, 1.8, None]
    assert (comparison.minus, comparison.off, comparison.at) == ("", [], 1)
    chosen = ComparisonFigure(RESULTS, **GIVEN, less="nopos", shown=["alibi"], at=60)
    assert (chosen.minus, chosen.off, chosen.at) == ("NoPos", ["learned", "NoPos"], 2)
    phone, wide = ComparisonFigure.height
    assert comparison.height == (phone + 3 * comparison.of_an_arm[0], wide + 2 * comparison.of_an_arm[1])
    assert ComparisonFigure({"a": [[1, 2]] * 2, "b": [[1, 2]] * 2}, **GIVEN | {"x": "ab"}).views[0]["x"] == ["a", "b"]


def test_layer_errors_are_of_each_step_at_which_all_runs_were_probed(layer_errors):
    labels = [view["labels"] for view in layer_errors.views]
    small, watched = ("small: 4 layers, width 64", "watched: 4 layers, width 64")
    assert labels == [
        *([small, step] for step in ("untrained", "2000 of 2000")),
        *([watched, step] for step in ("untrained", "47 of 2000", "750 of 2000", "2000 of 2000")),
        ["larger: 6 layers, width 64", "2000 of 2000"],
    ]
    # The last step of the first models, the layer in the middle.
    assert (layer_errors.view, layer_errors.at, layer_errors.off) == (1, 2, ["ALiBi"])
    first, last = layer_errors.views[0], layer_errors.views[-1]
    assert first["about"].startswith("Causal models of 4 layers, width 64, trained for 2000 steps on texts of 64 char")
    # Rows by seed, of all seeds of the figure.
    assert layer_errors.seedNames == [1, 2, 3]
    assert first["series"][1]["seeds"] == [[21.0, 21.1, 21.2, 21.3, 21.4], [22.0, 22.1, 22.2, 22.3, 22.4], None]
    assert last["series"][0]["seeds"][:2] == [None, [2.0, 2.1, 2.2, 2.3, 2.4, 2.5, 2.6]]
    # The paper's, where always the middle is as far off.
    assert first["series"][0]["beside"] == [20.0, 8.0, 4.0] and "beside" not in first["series"][1]
    assert first["levels"] == {"always the middle: 16.0": 16.0, "at random: 21.3": 21.3}


def test_depth_has_three_measures_of_each_arm_with_what_stands_beside_them(depth):
    assert depth.views[depth.view]["labels"] == ["texts, 4 layers", "read from one state"]
    shares, read, cost = depth.views[:3]
    names = ["position", "token", "token before"]
    assert [(each["panel"], each["name"]) for each in read["series"]] == [
        (arm, name) for arm in ("none", "input") for name in names
    ]
    position = shares["series"][0]
    assert position["seeds"][1] == [0.2, 0.45, 0.7, 0.95, 1.2] and position["beside"] == [0.15, 0.4, 0.65, 0.9, 1.15]
    assert [each.get("chance") for each in shares["series"]] == [None] * 4
    assert read["series"][0]["chance"] == 0.125 and len(cost["series"]) == 2


def test_a_dosed_bias_has_its_three_numbers(doses):
    assert (doses.views[doses.view]["labels"], doses.at) == (["monotonicity"], 1)
    for view, name in zip(doses.views, PROPERTIES, strict=True):
        for matrix, degrees in zip(view["matrices"], DOSES, strict=True):
            found = properties_of_matrix(perturbed_bias(name, degrees))
            for line, each in zip(matrix["numbers"], PROPERTIES, strict=True):
                mark = " ✗" if each == name and degrees else ""
                assert line == f"{each.replace('_', ' ')} {getattr(found, each):.3f}{mark}"


def test_without_javascript(comparison, layer_errors, doses, depth):
    head, *rows = rows_of(comparison)
    assert head == ["", "15", "40", "60"]
    assert rows[0][:2] == ["learned", "1.600 (1.352 to 1.848)"] and rows[2][2] == ""
    assert rows[0][3] == "2.100"
    long = ComparisonFigure({"a": np.zeros((2, 50)), "b": np.ones((2, 50))}, **GIVEN | {"x": range(50)})
    assert rows_of(long)[0] == ["", "0", "10", "20", "29", "39", "49"]
    head, *rows = rows_of(layer_errors)
    assert head[:3] == ["models", "steps", ""]
    assert [row[:3] for row in rows][:2] == [
        ["small: 4 layers, width 64", "2000 of 2000", n] for n in ("NoPos", "ALiBi")
    ]
    # One row for each property and task; for each arm and what is read, where places differ each with its own.
    assert len(rows_of(doses)) == 1 + 3 * 2
    _, *rows = rows_of(depth)
    assert len(rows) == 2 * 2 * 3 and rows[0][2:4] == ["none: position", "0: 0.15 (−0.49 to 0.79)"]


@pytest.mark.bad_input
def test_what_a_comparison_refuses():
    def made(results=RESULTS, **changes):
        return lambda: ComparisonFigure(results, **GIVEN | changes)

    assert_refused(made(RESULTS | {"NoPos": RESULTS["nopos"]}), "written alike", "another name")
    for numbers in ([[1.0, 2.0, 3.0]], [[1.0, 2.0]] * 3, [[1.0, float("inf"), 2.0]] * 3):
        assert_refused(made(RESULTS | {"nopos": numbers}), "'nopos'", "(seeds, 3 places)", "NaN where")
    for x in ([40, 15, 60], [15, NAN, 60], [15, 15, 60], [15], ["a", "a", "b"], [None, 1, 2]):
        assert_refused(made(x=x), "x is ", "numbers that rise, or names, each once")
    for other in ({"shown": ["zz"]}, {"less": "zz"}, {"guess": "zz"}):
        assert_refused(made(**other), "no arm 'zz'; the arms are ", *RESULTS)


@pytest.mark.bad_input
def test_doses_of_other_results_are_refused():
    doses = {"degrees": [0, 24], "guesses": dict.fromkeys(RIGHT, 0.1)}
    assert_refused(lambda: DoseFigure(RIGHT, **doses), "'order'", "2 doses")
