"""Each figure of the built pages, driven by mouse and keys: its words, numbers and lines against the package."""

import base64
import re

import numpy as np
import pytest
import torch
from playwright.sync_api import expect
from widgets.widget_checks import trained, unpacked

from posembed import sinusoidal
from posembed.encodings import T5, RoPE
from posembed.figures.looks import written
from posembed.mechanisms import CountingTransformer
from posembed.similarity import perturbed_bias, properties_of_matrix
from posembed.training import interval, load_runs
from posembed.training.nopos import ALL_SCHEMES, PUBLISHED_SCHEMES, published_probe, reported
from posembed.widgets import BiasFigure, LookupFigure, RotationFigure, ShuffleFigure
from posembed.widgets.counting import VOCABULARY
from posembed.widgets.doses import ALL_DOSES
from posembed.widgets.doses import NAMES as DOSED
from posembed.widgets.layer_errors import GROUPS, NAMES
from posembed.widgets.probe import CONTROLS, SPLITS
from posembed.widgets.properties_map import PROPERTIES

from .chromium import into_view, middle
from .figures import attributes, numbers, shows
from .kinds import (
    WORDS,
    Biases,
    Comparison,
    ComparisonOfSizes,
    Counting,
    Depth,
    Doses,
    LayerErrors,
    Lookup,
    Probe,
    Properties,
    Repairs,
    Rotation,
    RotationOfRelativePositions,
    Shuffle,
    Sinusoids,
)

PHONE = pytest.param(390, marks=pytest.mark.slow)


@pytest.fixture(params=[1280, PHONE], ids=lambda width: f"{width}px")
def width(request):
    return request.param


def table(n_positions, d_model, base):
    return sinusoidal(n_positions, d_model, base=base, dtype=torch.float64).numpy()


def outputs(layer, order, positions):
    """The layer's outputs for an order of the words."""
    n = len(order)
    rows = torch.tensor([n + word * n + place if positions else word for place, word in enumerate(order)])
    weights = layer["logits"][:, rows][:, :, rows].softmax(dim=-1)
    return (weights @ layer["values"][:, rows]).sum(dim=0) + layer["bias"]


def test_shuffle(opened, width, encoder):
    figure = opened(Shuffle, width)
    before = figure.colours()
    (x, y), (to_x, _) = middle(figure.word("I")), middle(figure.word("coding"))
    figure.page.mouse.move(x, y)
    figure.page.mouse.down()
    figure.page.mouse.move(to_x, y, steps=12)
    figure.page.mouse.up()
    assert figure.order() == ["do", "like", "coding", "I"]
    assert figure.colours() == before
    assert set(figure.verdicts().values()) == {"unchanged"}
    expect(figure.status).to_contain_text("the outputs moved with the words")
    figure.press("First order")
    layer = {name: torch.tensor(rows) for name, rows in ShuffleFigure(encoder, " ".join(WORDS)).layer.items()}
    for positions in (False, True):
        if positions:
            figure.switch("add positions")
        figure.word("I").press("ArrowRight")
        expect(figure.word("I")).to_be_focused()
        expect(figure.word("I")).to_have_accessible_name("I, place 2 of 4; the arrow keys move it")
        order = [1, 0, 2, 3]
        assert figure.order() == [WORDS[place] for place in order]
        first, now = outputs(layer, range(4), positions), outputs(layer, order, positions)
        shares = (now - first[order]).abs().amax(dim=1) / first.abs().max()
        shown = [numbers(figure.verdicts()[WORDS[place]].replace("unchanged", "0"))[0] / 100 for place in order]
        assert shown == pytest.approx(shares.tolist(), abs=0.005 + 1e-6)
        assert (max(shown) > 0) == positions == (figure.colours() != before)
        figure.press("First order")


def test_lookup(opened, width):
    figure = opened(Lookup, width)
    figure.press("5 ran")
    figure.page.keyboard.press("ArrowDown")
    assert figure.picked() == ["6 on"]
    expect(figure.button("6 on")).to_be_focused()
    assert figure.rows("tfoot") == [figure.rows()[6]]
    expect(figure.status).to_contain_text("the product is row 6 of the table")
    for padding, used in ((False, {0, 1, 2, 4, 6, 7}), (True, {1, 2, 4, 6, 7})):
        figure.reset()
        if padding:
            figure.switch("padding_idx=0")
        for steps in (1, 2):
            figure.press("Take a gradient step")
            wanted = trained(LookupFigure(), padding, steps)["tables"][-1]
            assert np.abs(np.subtract(figure.rows(), wanted)).max() <= 0.005 + 1e-6
        assert set(figure.marked()) == used
        expect(figure.status).to_contain_text(f"{len(used)} of 8 rows changed")


def curve(chart, line, ends):
    """The values of a chart's line, by its pixels and the values at the ends of its axis."""
    _, top, bottom, _ = numbers(*attributes(chart.locator(".pe-axis"), "d"))
    heights = np.reshape(numbers(*attributes(chart.locator(line), "d")), (-1, 2))[:, 1]
    return ends[0] + (bottom - heights) / (bottom - top) * (ends[1] - ends[0])


@pytest.mark.parametrize(("d_model", "base"), [(64, 10000.0), pytest.param(768, 1e6, marks=pytest.mark.slow)])
def test_sinusoids(opened, width, d_model, base):
    figure = opened(Sinusoids, width)
    assert figure.titles() == ["The table", "Row 20", "Row 20 times row 20 + k", "Wavelength of each pair"]
    figure.choose(d_model, base, 36)
    before = attributes(figure.chart("times").locator(".pe-curve"), "d")
    figure.slider("position").press("ArrowRight")
    expect(figure.slider("position")).to_have_attribute("aria-valuetext", "37")
    assert attributes(figure.chart("times").locator(".pe-curve"), "d") == before
    rows = table(2048, d_model, base)
    # A line is drawn to the hundredth of a pixel, and a chart is more than 50 pixels high.
    for line, half in ((".pe-curve:not(.pe-second)", 0), (".pe-curve.pe-second", 1)):
        assert np.abs(curve(figure.chart("^Row 37$"), line, (-1, 1)) - rows[37, half::2]).max() < 2 * 0.01 / 50
    products = rows[:129] @ rows[0]
    low = next(low for low in (0, -d_model / 4, -d_model / 2) if low <= products.min() + 1e-9)
    drawn = curve(figure.chart("times"), ".pe-curve", (low, d_model / 2))
    assert np.abs(drawn - products).max() < d_model * 0.01 / 50
    rise = int(np.flatnonzero(np.diff(rows @ rows[0]) > 0)[0]) + 1
    expect(figure.chart("times").locator(".pe-note")).to_have_text(
        f"Falls up to offset {rise - 1}, and rises for the first time from {rise - 1} to {rise}."
    )
    note = figure.chart("Wavelength").locator(".pe-note").inner_text().replace(",", "")
    waves = 2 * np.pi * base ** (2 * np.arange(d_model // 2) / d_model)
    assert numbers(note)[:2] == pytest.approx([waves[0], waves[-1]], abs=0.5)
    assert numbers(note)[2:] == [(waves <= 128).sum(), d_model // 2, 128]


def test_an_offset_turns_a_row_into_the_row_further_on(opened, width):
    figure = opened(Rotation, width)
    figure.slide(position_p=17, offset_k=7)
    wanted, speeds = table(25, 8, 100.0), 100.0 ** (-np.arange(4) / 4)
    for pair, rows in enumerate(figure.rows()):
        columns = slice(2 * pair, 2 * pair + 2)
        assert rows["row 17"] == pytest.approx(wanted[17, columns], abs=0.005 + 1e-9)
        assert rows["turned"] == rows["row 24"] == pytest.approx(wanted[24, columns], abs=0.005 + 1e-9)
    angles = np.outer(speeds, [17, 24]).flatten()
    hands = figure.hands()
    lengths = np.hypot(*hands.T)
    assert hands / lengths[:, None] == pytest.approx(np.column_stack([np.cos(angles), np.sin(angles)]), abs=1e-6)
    assert figure.product() == pytest.approx(wanted[17] @ wanted[24], abs=5e-4 + 1e-9)
    figure.slider("offset k").press("ArrowRight")
    expect(figure.status).to_contain_text("row 17 becomes row 25")


@pytest.mark.parametrize("kind", [Rotation, pytest.param(RotationOfRelativePositions, marks=pytest.mark.slow)])
def test_the_product_of_rope_stays_when_both_shift(opened, width, kind):
    figure, state = opened(kind, width), RotationFigure()
    figure.view("rope")
    figure.slide(query_at=4, key_at=20, shift_both=33)
    rope, vectors = RoPE(8, base=100.0, layout="interleaved"), torch.tensor([state.query, state.key])
    query, key = rope.rotate(vectors.double(), torch.tensor([37, 53])).numpy()
    for pair, rows in enumerate(figure.rows()):
        columns = slice(2 * pair, 2 * pair + 2)
        assert rows["query"] == pytest.approx(query[columns], abs=0.005 + 1e-9)
        assert rows["key"] == pytest.approx(key[columns], abs=0.005 + 1e-9)
    product = figure.product()
    assert product == pytest.approx(query @ key, abs=5e-4 + 1e-9)
    figure.slider("shift both").press("ArrowRight")
    expect(figure.status).to_have_text(re.compile("^Both moved, to 38 and 54: the product is still"))
    assert figure.product() == product
    figure.slider("key at").press("ArrowRight")
    assert figure.product() != product


def test_biases(opened, width):
    figure, state = opened(Biases, width), BiasFigure(load_runs("nopos")).state()
    assert figure.given(*state) == state
    for head, offset in ((1, -66), (4, -67)):
        figure.slide(query_at=4, head=head - 1, offset=offset)
        for panel in state["panels"]:
            table = panel["learned"]["causal"]["tables"][-1]
            assert shows(figure.value(panel["name"]), table[head - 1][128 + offset], rounding=1e-9)
        expect(figure.status).to_contain_text(f"Trained, head {head}, offset −{-offset}: Shaw ")
    ahead = figure.root.get_by_role("switch", name="bidirectional")
    expect(ahead).to_be_disabled()
    expect(ahead).not_to_be_checked()
    figure.switch("trained")
    expect(ahead).to_be_enabled()
    figure.slide(query_at=3)
    names = [panel["name"] for panel in state["panels"]]
    # FIRE has a table for each position of the query; the others have one, up to the farthest.
    tables = {panel["name"]: next(iter(panel["forms"].values()))["tables"] for panel in state["panels"]}
    t5, into = T5(4, causal=True), {"T5": 128, "Shaw": 128, "ALiBi": 128, "KERPLE": 128, "FIRE": 64}
    for head, offset in ((3, -19), (4, -30)):
        figure.slide(head=head - 1)
        into_view(figure.chart("KERPLE"))
        figure.page.mouse.move(*figure.point_at("KERPLE", offset, 65))
        expect(figure.slider("offset")).to_have_value(str(offset))
        for name in names:
            row = tables[name][3 if name == "FIRE" else 0][head - 1]
            assert shows(figure.value(name), row[into[name] + offset], rounding=1e-9), name
        expect(figure.status).to_contain_text(
            f"Head {head}, offset −{-offset}: Shaw {figure.value('Shaw')} (clipped to"
        )
        assert figure.words("T5").startswith(f"bucket {t5.bucket(torch.tensor(offset))}: ")
        assert figure.words("ALiBi") == f"s = 1/{4**head}"
    figure.switch("attention weights")
    weights = torch.tensor(tables["ALiBi"][0][3][64:129], dtype=torch.float64).softmax(-1)
    assert shows(figure.value("ALiBi"), 100 * float(weights[64 - 30]), rounding=1e-9)
    figure.switch("bidirectional")
    expect(figure.panel("FIRE")).to_contain_text("causal only")
    assert figure.chart("FIRE").locator(".pe-bias-line").count() == 0


def test_probe(opened, width):
    figure = opened(Probe, width)
    state = figure.given("splits", "controls")
    # It opens on the encoder, as the text above it says.
    assert state["table"] == "sentence-transformers/all-MiniLM-L6-v2"
    given = state["tables"][0]
    errors, n = ("error", "constant", "permuted labels", "random table"), given["n_positions"]
    for split, control in zip(SPLITS, [*CONTROLS, "table"], strict=True):
        figure.pick(split=split, points=control)
        score = given["scores"][split]
        for text, name in zip(figure.errors(), errors, strict=True):
            assert shows(text, score[name], 0.0005 + 1e-9), (split, name)
        error = figure.errors()[errors.index({"table": "error"}.get(control, control))]
        if control == "table":
            headline = f"Test error {error} positions" if score["held_out"] else "No test"
        else:
            headline = f"{control.split()[0].capitalize()}: {'error ' + error if score['held_out'] else 'no test'}"
        assert figure.text("title") == headline
        expect(figure.status).to_contain_text(f"{given['short']}, {SPLITS[split][0]}. {headline}. ")
        wanted = np.column_stack([score["positions"], score["predicted"][control]])
        inside = (wanted[:, 1] >= -n / 8) & (wanted[:, 1] <= n + n / 8)
        assert np.abs(figure.points() - wanted[inside]).max(initial=0) < 0.01 * n / 200
        assert figure.text("drawn").startswith(f"Drawn: {len(wanted)} of {score['n_tested']} ")
    figure.page.mouse.move(*figure.point_at(score["positions"][40]))
    predicted, position = score["predicted"]["table"][40], score["positions"][40]
    words = (
        f"predicted {predicted:.1f}, {abs(predicted - position):.1f} too {'high' if predicted > position else 'low'}"
    )
    expect(figure.status).to_have_text(f"Position {position}: {words}.".replace("-", "−"))
    figure.slider("position").press("ArrowRight")
    expect(figure.status).to_contain_text(f"Position {score['positions'][41]}: ")


def test_properties(opened, width):
    figure = opened(Properties, width)
    for index, packed in enumerate(figure.given("matrices", "cell")["matrices"]):
        figure.choice("matrix").select_option(index=index)
        (values, _), (row, column) = unpacked(packed), figure.cell()
        measured = properties_of_matrix(values).to_dict()
        for name in PROPERTIES:
            shown = figure.card(name.replace("_", " ").capitalize()).locator(".pe-value").inner_text()
            exact = packed["properties"][name]
            assert shown == ("undefined" if exact is None else f"{exact:.3f}")
            # The state rounds values; monotonicity, which rounding could change, is held to the package without a page.
            assert name == "monotonicity" or measured[name] == pytest.approx(exact, abs=1e-3)
        said = re.search("value (.*?), mirror cell (.*?)(?:, difference|[.])", figure.status.inner_text())
        for text, value in zip(said.groups(), (values[row, column], values[column, row]), strict=True):
            assert text == "not seen" if np.isinf(value) else shows(text, value, 0.001 * packed["unit"])
    figure.map.focus()
    for key, cell in [("ArrowLeft", (32, 15)), ("ArrowUp", (31, 15)), ("ArrowRight", (31, 16))]:
        figure.page.keyboard.press(key)
        assert figure.cell() == cell
    figure.press("mirror cell")
    assert figure.cell() == (16, 31)
    figure.page.mouse.move(*figure.point(40, 3))
    assert figure.cell() == (40, 3)
    figure.page.mouse.move(1, 1)
    assert figure.cell() == (16, 31)


def test_layer_errors(opened, width):
    figure, runs = opened(LayerErrors, width), load_runs("nopos")
    figure.show_all()
    for group in figure.groups():
        figure.choose(group["key"])
        layer = group["n_layers"] // 2
        expect(figure.slider("layer")).to_have_attribute("aria-valuetext", f"{layer} of {group['n_layers']}")
        for scheme in GROUPS[group["key"]][2]:
            found = reported(GROUPS[group["key"]][1].format(scheme), runs)
            errors = np.array([run.metrics["layers"]["mae"] for run in found])
            its = interval(errors[:, layer].tolist())
            error, share, paper = figure.row(NAMES[scheme])
            assert numbers(error) == pytest.approx([its.mean, its.low, its.high], abs=0.05 + 1e-4)
            assert float(share) == pytest.approx(its.mean / group["middle"], abs=0.005 + 1e-4)
            drawn = np.column_stack([np.linspace(0, 1, errors.shape[1]), errors.mean(axis=0) / group["middle"]])
            # A path has two decimals of a pixel, of which the chart has hundreds.
            assert figure.curve(scheme) == pytest.approx(drawn, abs=0.002)
            if scheme in PUBLISHED_SCHEMES:
                assert float(paper) == pytest.approx(published_probe(scheme)[12], abs=0.005 + 1e-4)
                assert figure.curve(scheme, ".pe-layers-paper")[:, 1] == pytest.approx(
                    published_probe(scheme), abs=0.002
                )
    figure.choice("models").select_option(index=0)
    figure.switch("learned")
    assert figure.row("learned") == ["", "", ""]
    figure.slider("layer").press("Home")
    expect(figure.root.locator("caption")).to_contain_text("Error at layer 0 of 4")


def test_counting(opened, width):
    figure = opened(Counting, width)
    for causal, n_positions in ((True, 7), (True, 11), (False, 11)):
        figure.choose(9, n_positions)
        if not causal:
            figure.switch("causal mask")
        model = CountingTransformer(n_positions, vocab_size=len(VOCABULARY))
        model.attention.causal = causal
        steps = model.steps(torch.tensor([[VOCABULARY.index(word) for word in figure.words()]]))
        assert figure.results() == steps.count[0].round().int().tolist()
        drawn = (float(steps.share[0, 8]), float(steps.count[0, 8]))
        assert figure.place(".pe-count-point") == pytest.approx(drawn, abs=1e-6)
    expect(figure.status).to_contain_text("Nothing tells them apart.")
    figure.reset()
    figure.press("next token")
    expect(figure.status).to_have_text("Token 5: 1/5 arrives and 5 comes out, its position.")
    assert figure.token() == 5
    words = figure.words()
    figure.press("Shuffle the words")
    assert figure.results() == list(range(1, 12))
    assert figure.words() != words and sorted(figure.words()) == sorted(words)
    figure.chips()[6].click()
    assert figure.token() == 7


@pytest.mark.parametrize("width", [PHONE, 1280])
def test_doses(opened, width):
    figure = opened(Doses, width)
    for index, violated in enumerate(sorted(DOSED)):
        figure.pick(index)
        for place, degrees in enumerate(ALL_DOSES):
            figure.slide(dose=place)
            found = properties_of_matrix(perturbed_bias(violated, degrees)).to_dict()
            # In the order of the state's names.
            assert figure.numbers() == [f"{found[name]:.3f}" for name in sorted(DOSED)]
    # Options stand in the order of the state's names, too: the last but one is symmetry.
    figure.pick(sorted(DOSED).index("symmetry"))
    assert figure.costs()[1].startswith("order: 0.79 right without a dose, 1.00 with it; difference 0.21 (")
    expect(figure.status).to_contain_text("Symmetry violated by 48 degrees.")


@pytest.mark.parametrize("width", [PHONE, 1280])
def test_depth(opened, width):
    figure = opened(Depth, width)
    models = figure.given("models", "taken")["models"]
    for index, model in enumerate(models):
        for arm in model["arms"]:
            for measure, name in enumerate(("shares", "read")):
                figure.pick(index, arm["name"], measure)
                figure.slide(state=1)
                wanted = [(each["name"], each["trained"][1][0]) for each in arm[name]]
                for text, (series, mean) in zip(figure.items(), wanted, strict=True):
                    assert text.startswith(f"{series} ")
                    shown = text.removeprefix(series).split()[0].replace("−", "-")
                    assert abs(float(shown) - mean) <= 0.0051
    # The switch shows what it costs to take position out, in place of what there is.
    figure.pick(3, "rope, 2-D", 0)
    figure.switch("take position out")
    (cost,) = figure.items()
    assert cost.startswith("taking position out there costs 0.73 of the answers (")
    expect(figure.chart).to_have_accessible_name(re.compile("^cost of taking position out, of the answers by state"))
    figure.switch("take position out")
    # What another model has not is one of its own.
    figure.slide(state=6)
    figure.choice("model").select_option(index=2)
    expect(figure.status).to_contain_text("hidden characters, 4 layers, input, after the last layer: position ")
    assert figure.slider("state").get_attribute("aria-valuetext") == "4"


def test_comparison(opened, width):
    figure, runs = opened(Comparison, width), load_runs("nopos")
    losses = {
        written(name.replace("_", " ")): np.array(
            [run.metrics["loss_by_position"] for run in reported(f"causal, {name}", runs)]
        )
        for name in ALL_SCHEMES
    }
    # As the page opens; before each test all are switched on.
    assert figure.given("less", "shown")["shown"] == ["NoPos", "learned", "RoPE", "xPos", "T5", "ALiBi"]
    for less, place in (("nothing", 0), ("NoPos", 8), ("Shaw", 15), ("nothing", 8)):
        figure.pick(less, place)
        for (name, its), shown in zip(losses.items(), figure.numbers(), strict=True):
            if name == less:
                assert shown == []
                continue
            n = len(its) if less == "nothing" else min(len(its), len(losses[less]))
            zero = np.zeros(n) if less == "nothing" else losses[less][:n, place]
            wanted = interval((its[:n, place] - zero).tolist())
            assert shown == pytest.approx([wanted.mean, wanted.low, wanted.high], abs=0.0006)
    expect(figure.root.locator("[data-arm]")).to_have_count(12)
    # What is taken as zero has no switch: it is the line at zero.
    figure.pick("NoPos", 8)
    expect(figure.root.locator("tbody").get_by_role("switch")).to_have_count(11)
    figure.pick("nothing", 8)
    figure.switch("RoPE")
    expect(figure.root.locator("[data-arm]")).to_have_count(11)
    expect(figure.root.locator(".pe-seed")).to_have_count(0)
    figure.switch("single seeds")
    # Five of each of four schemes, and three of seven.
    expect(figure.root.locator(".pe-seed")).to_have_count(4 * 5 + 7 * 3)


def test_an_arm_that_is_alone_stands_on_its_place(opened, width):
    figure = opened(ComparisonOfSizes, width)
    left, right = (float(x) for x in re.findall(r"[MH]([\d.]+)", *attributes(figure.chart.locator(".pe-axis"), "d")))
    places = [left + (right - left) * (k + 0.5) / 6 for k in range(6)]
    for less, apart in (("learned", 0), ("nothing", (right - left) / 6 * 0.15)):
        figure.pick(less, 2)
        for points in figure.root.locator("[data-arm]").all():
            drawn = [numbers(each)[0] for each in attributes(points.locator(".pe-point"), "transform")]
            assert np.abs(np.subtract(drawn, places)) == pytest.approx([apart] * 6, abs=0.02)


def test_repairs(opened, width):
    figure = opened(Repairs, width)
    for index, repair in enumerate(figure.given("repairs", "repair")["repairs"]):
        figure.pick(index, "broken")
        assert figure.verdict() == f"The property is violated: {repair['finds']}"
        figure.pick(index, "mended")
        assert figure.verdict() == f"The property holds: {repair['holds']}"
        packed = [np.frombuffer(base64.b64decode(repair[name]), np.uint8).astype(int) for name in ("broken", "mended")]
        figure.pick(index, "where they differ")
        differ = int((packed[0] != packed[1]).sum())
        assert numbers(figure.verdict())[:2] == [differ, repair["shape"][0] * repair["shape"][1]]
