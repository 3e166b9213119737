"""Each figure of the built pages, driven by mouse and keys: its words and numbers against the package.

That its module computes what the package does is tested without a page: tests/widgets.
"""

import base64
import re
from operator import methodcaller as do

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from playwright.sync_api import expect
from widgets.widget_checks import trained, unpacked

from posembed import sinusoidal
from posembed.data import load_corpus
from posembed.encodings import T5, RoPE
from posembed.mechanisms import CountingTransformer
from posembed.stats import interval
from posembed.stored import load_model, load_study
from posembed.widgets import LookupFigure, RotationFigure
from posembed.widgets.counting import VOCABULARY
from posembed.widgets.eight_bit import rounded
from posembed.widgets.probe import CONTROLS, SPLITS
from posembed.widgets.properties_map import PROPERTIES
from studies.nopos import ALL_SCHEMES

from .chromium import into_view, middle, visit
from .figures import attributes, numbers, shows
from .kinds import (
    MEASURES,
    WORDS,
    Biases,
    Comparison,
    Counting,
    Depth,
    Doses,
    LayerErrors,
    Lookup,
    Models,
    Probe,
    Properties,
    Repairs,
    Rotation,
    Shuffle,
    Sinusoids,
)


def table(n_positions, d_model, base):
    return sinusoidal(n_positions, d_model, base=base, dtype=torch.float64).numpy()


def test_shuffle(opened):
    figure = opened(Shuffle)
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
    figure.switch("add positions")
    figure.word("I").press("ArrowRight")
    expect(figure.word("I")).to_be_focused()
    expect(figure.word("I")).to_have_accessible_name("I, place 2 of 4; the arrow keys move it")
    assert figure.order() == [WORDS[place] for place in (1, 0, 2, 3)]
    assert "unchanged" not in figure.verdicts().values() and figure.colours() != before


def test_lookup(opened):
    figure = opened(Lookup)
    figure.press("5 ran")
    figure.page.keyboard.press("ArrowDown")
    assert figure.picked() == ["6 on"]
    expect(figure.button("6 on")).to_be_focused()
    assert figure.rows("tfoot") == [figure.rows()[6]]
    expect(figure.status).to_contain_text("the product is row 6 of the table")
    for padding, used in ((False, {0, 1, 2, 4, 6, 7}), (True, {1, 2, 4, 6, 7})):
        figure.reset()
        first = figure.rows()
        if padding:
            figure.switch("padding_idx=0")
        figure.press("Take a gradient step")
        wanted = trained(LookupFigure(), padding, 1)["tables"][-1]
        assert np.abs(np.subtract(figure.rows(), wanted)).max() <= 0.005 + 1e-6
        assert set(figure.marked()) == used
        expect(figure.status).to_contain_text(f"{len(used)} of 8 rows changed")
        figure.press("Start again")
        assert (figure.rows(), figure.marked()) == (first, [])


def test_sinusoids(opened):
    figure = opened(Sinusoids)
    assert figure.titles() == ["The table", "Row 20", "Row 20 times row 20 + k", "Wavelength of each pair"]
    figure.choose(64, 10000.0, 36)
    products = attributes(figure.chart("times").locator(".pe-curve"), "d")
    figure.slider("position").press("ArrowRight")
    expect(figure.slider("position")).to_have_attribute("aria-valuetext", "37")
    assert attributes(figure.chart("times").locator(".pe-curve"), "d") == products
    chart = figure.chart("^Row 37$")
    _, top, bottom, _ = numbers(*attributes(chart.locator(".pe-axis"), "d"))
    line = np.reshape(numbers(*attributes(chart.locator(".pe-curve.pe-second"), "d")), (-1, 2))[:, 1]
    # A line is drawn to the hundredth of a pixel, and a chart is more than 50 pixels high.
    drawn = 2 * (bottom - line) / (bottom - top) - 1
    assert np.abs(drawn - table(38, 64, 10000.0)[37, 1::2]).max() < 2 * 0.01 / 50
    note = figure.chart("Wavelength").locator(".pe-note").inner_text().replace(",", "")
    waves = 2 * np.pi * 10000.0 ** (2 * np.arange(32) / 64)
    assert numbers(note)[:2] == pytest.approx([waves[0], waves[-1]], abs=0.5)
    assert numbers(note)[2:] == [(waves <= 128).sum(), 32, 128]


def test_rotation(opened):
    """An offset turns a row into the row further on; the product of RoPE stays when both shift."""
    figure, state = opened(Rotation), RotationFigure()
    figure.slide(position_p=17, offset_k=7)
    wanted = table(25, 8, 100.0)
    for pair, rows in enumerate(figure.rows()):
        columns = slice(2 * pair, 2 * pair + 2)
        assert rows["row 17"] == pytest.approx(wanted[17, columns], abs=0.005 + 1e-9)
        assert rows["turned"] == rows["row 24"] == pytest.approx(wanted[24, columns], abs=0.005 + 1e-9)
    angles = np.outer(100.0 ** (-np.arange(4) / 4), [17, 24]).flatten()
    hands = figure.hands()
    assert hands / np.hypot(*hands.T)[:, None] == pytest.approx(
        np.column_stack([np.cos(angles), np.sin(angles)]), abs=1e-6
    )
    assert figure.product() == pytest.approx(wanted[17] @ wanted[24], abs=5e-4 + 1e-9)
    figure.view("rope")
    figure.slide(query_at=4, key_at=20, shift_both=33)
    rope, vectors = RoPE(8, base=100.0, layout="interleaved"), torch.tensor([state.query, state.key])
    query, key = rope.rotate(vectors.double(), torch.tensor([37, 53])).numpy()
    product = figure.product()
    assert product == pytest.approx(query @ key, abs=5e-4 + 1e-9)
    figure.slider("shift both").press("ArrowRight")
    expect(figure.status).to_have_text(re.compile("^Both moved, to 38 and 54: the product is still"))
    assert figure.product() == product
    figure.slider("key at").press("ArrowRight")
    assert figure.product() != product


def test_biases(opened):
    figure = opened(Biases)
    panels = {panel["name"]: panel for panel in figure.given("panels")["panels"]}
    figure.slide(query_at=4, head=3, offset=-67)
    for name, panel in panels.items():
        assert shows(figure.value(name), panel["learned"]["causal"]["tables"][-1][3][128 - 67], rounding=1e-9)
    expect(figure.status).to_contain_text("Trained, head 4, offset −67: Shaw ")
    ahead = figure.root.get_by_role("switch", name="bidirectional")
    expect(ahead).to_be_disabled()
    figure.switch("trained")
    expect(ahead).to_be_enabled()
    figure.slide(query_at=3, head=2)
    into_view(figure.chart("KERPLE"))
    figure.page.mouse.move(*figure.point_at("KERPLE", -19, 65))
    expect(figure.slider("offset")).to_have_value("-19")
    for name, panel in panels.items():
        # FIRE has a table for each position of the query; the others have one, up to the farthest.
        place, into = (3, 64) if name == "FIRE" else (0, 128)
        forms = panel["forms"]
        row = forms.get("causal", next(iter(forms.values())))["tables"][place][2]
        assert shows(figure.value(name), row[into - 19], rounding=1e-9), name
    bucket = T5(4, causal=True).bucket(torch.tensor(-19))
    assert figure.words("T5").startswith(f"bucket {bucket}: ") and figure.words("ALiBi") == "s = 1/64"
    figure.switch("bidirectional")
    expect(figure.panel("FIRE")).to_contain_text("causal only")
    assert figure.chart("FIRE").locator(".pe-bias-line").count() == 0


def test_probe(opened):
    figure = opened(Probe)
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
    figure.page.mouse.move(*figure.point_at(score["positions"][40]))
    predicted, position = score["predicted"]["table"][40], score["positions"][40]
    words = (
        f"predicted {predicted:.1f}, {abs(predicted - position):.1f} too {'high' if predicted > position else 'low'}"
    )
    expect(figure.status).to_have_text(f"Position {position}: {words}.".replace("-", "−"))
    figure.slider("position").press("ArrowRight")
    expect(figure.status).to_contain_text(f"Position {score['positions'][41]}: ")


def test_properties(opened):
    figure = opened(Properties)
    for index, packed in enumerate(figure.given("matrices", "cell")["matrices"]):
        figure.pick(index)
        (values, _), (row, column) = unpacked(packed), figure.cell()
        for name in PROPERTIES:
            shown = figure.card(name.replace("_", " ").capitalize()).locator(".pe-value").inner_text()
            exact = packed["properties"][name]
            assert shown == ("undefined" if exact is None else f"{exact:.3f}")
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


def test_counting(opened):
    figure = opened(Counting)
    for causal, n_positions in ((True, 7), (True, 11), (False, 11)):
        figure.choose(9, n_positions)
        if not causal:
            figure.switch("causal mask")
        model = CountingTransformer(n_positions, vocab_size=len(VOCABULARY))
        model.attention.causal = causal
        steps = model.steps(torch.tensor([[VOCABULARY.index(word) for word in figure.words()]]))
        assert figure.results() == steps.count[0].round().int().tolist()
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


def test_comparison(opened):
    figure, by_arm = opened(Comparison), load_study("nopos").by_arm
    losses = [np.array([run.metrics["loss_by_position"] for run in by_arm[f"causal, {name}"]]) for name in ALL_SCHEMES]
    zero = losses[ALL_SCHEMES.index("nopos")]
    # As the page opens; before each test all are switched on.
    assert len(figure.given("views", "off")["off"]) == len(ALL_SCHEMES) - 6
    for less, place in (("NoPos", 8), ("nothing", 15)):
        figure.pick(less, place)
        for its, shown in zip(losses, figure.numbers(), strict=True):
            n = min(len(its), len(zero))
            given = its[:, place] if less == "nothing" else its[:n, place] - zero[:n, place]
            wanted = interval(given.tolist())
            # What is taken as zero has no numbers.
            assert shown in ([], pytest.approx([wanted.mean, wanted.low, wanted.high], abs=0.0006))
    figure.pick("NoPos", 8)
    # Nor has it a switch: it is the line at zero.
    expect(figure.root.locator("tbody").get_by_role("switch")).to_have_count(11)
    figure.pick("nothing", 8)
    figure.switch("RoPE")
    expect(figure.root.locator("[data-arm]")).to_have_count(11)
    expect(figure.root.locator(".pe-seed")).to_have_count(0)
    figure.switch("single seeds")
    # Five of each of four schemes, and three of seven.
    expect(figure.root.locator(".pe-seed")).to_have_count(4 * 5 + 7 * 3)


def test_a_curve_is_drawn_before_it_is_shown(opened):
    """With a pointer or a key; until then no number and no line says where it goes."""
    figure = opened(Comparison)
    figure.press("Draw it again")
    arm = figure.root.locator("[data-arm='RoPE']")
    expect(arm).to_have_count(0)
    expect(figure.root.locator("tr", has_text="RoPE")).to_contain_text("?")
    figure.key("your guess", "ArrowRight")
    expect(figure.root.locator(".pe-chart-dot")).to_have_count(1)
    figure.press("Show the curve")
    expect(arm).to_have_count(1)
    expect(figure.status).to_contain_text("Your guess is off by ")


@pytest.mark.parametrize(
    ("kind", "steps", "said"),
    [
        (LayerErrors, [do("slide", layer=2)], "NoPos3.25(2.80 to 3.70)1.31"),
        (Doses, [do("choose", violated="symmetry"), do("slide", dose=4)], "change from 0 0.21 ("),
        (
            Depth,
            [do("choose", measure=MEASURES[2]), do("slide", state=0)],
            "table once2.21",
        ),
    ],
)
def test_a_chart_has_its_numbers_beside_it(opened, kind, steps, said):
    figure = opened(kind)
    for step in steps:
        step(figure)
    expect(figure.root).to_contain_text(said)


def test_models(opened):
    """Typed, stretched, dragged: what the page says is what torch says with the same eight bits."""
    figure, characters = opened(Models), load_corpus().vocabulary
    text = figure.given("first", "characters")["text"]
    pair = [rounded(load_model(name)) for name in ("causal-nopos", "causal-learned")]
    figure.pick(positions="0, 2, 4, …: stretched")
    for its, stretch in ((text, 2), ("We hold these", 1)):
        if stretch == 1:
            figure.go("Reset")
            figure.type(its)
        ids = characters.encode(its)
        for side, model, shown in zip(("left", "right"), pair, figure.losses(), strict=True):
            with torch.no_grad():
                logits = model(ids[None], stretch * torch.arange(len(ids)))[0]
            assert shown == pytest.approx(F.cross_entropy(logits[:-1], ids[1:]).item(), abs=0.006)
            wanted = logits[-1].softmax(-1).topk(5)
            names = [each.replace(" ", "␣") for each in characters.decode(wanted.indices)]
            assert figure.guesses(side) == [
                (name, pytest.approx(chance, abs=0.006))
                for name, chance in zip(names, wanted.values.tolist(), strict=True)
            ]
    for word, other, wanted in (("We", "these", "hold these We"), ("We", "hold", "We hold these")):
        x, y = middle(figure.root.locator(f".pe-word:text-is('{word}')"))
        figure.page.mouse.move(x, y)
        figure.page.mouse.down()
        # Not past its middle: a word takes the place of the one that it is dropped on.
        figure.page.mouse.move(*middle(figure.root.locator(f".pe-word:text-is('{other}')")), steps=12)
        figure.page.mouse.up()
        expect(figure.root.get_by_role("textbox")).to_have_value(wanted)
        # The words are drawn anew when the models have read them.
        figure.wait()
    # Lines of the text break between words.
    text = "We hold these truths to be the nation united for all of it"
    figure.type(text)
    tops = figure.root.locator(".pe-models-left .pe-models-text span").evaluate_all(
        "(all) => all.map((e) => e.offsetTop)"
    )
    assert len({*tops}) > 1
    assert {len({*tops[slice(*word.span())]}) for word in re.finditer(r"\S+", text)} == {1}


def test_models_come_when_they_are_touched_and_from_a_file_too(browser, site, built):
    for address in (site, built.as_uri()):
        page = browser.new_page(viewport={"width": 390, "height": 900})
        asked = []
        page.on("request", lambda request, asked=asked: asked.append(request.url))
        visit(page, f"{address}/{Models.chapter}")
        figure = Models(page)
        assert not [each for each in asked if "/models/" in each]
        figure.type("a nation")
        assert {each.rpartition("/")[2] for each in asked if "/models/" in each} == {
            "causal-nopos.js",
            "causal-learned.js",
        }
        page.close()


def test_repairs(opened):
    """The picture is wiped from the mended code's to the broken code's, and the right line frames what it changes."""
    figure = opened(Repairs)
    wipe, framed = figure.slider("wipe"), figure.root.locator(".pe-repair-framed")
    given = next(state for state in figure.given_all("wipe", "maps") if state["title"] in figure.label)
    packed = [np.frombuffer(base64.b64decode(each), np.uint8).astype(int) for each in given["maps"]]
    expect(figure.status).to_contain_text("All is mended.")
    box = wipe.bounding_box()
    figure.page.mouse.move(box["x"] + box["width"] / 4, box["y"] + 20)
    figure.page.mouse.down()
    figure.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 40)
    figure.page.mouse.up()
    expect(wipe).to_have_attribute("aria-valuenow", str(given["shape"][1] // 2))
    for number, (_, blamed) in enumerate(given["lines"]):
        figure.line(number)
        # A frame, and a rim of the paper around it.
        expect(framed).to_have_count(2 * int(blamed))
        if blamed:
            # A step apart is rounding, and 255 is no number.
            differ = (abs(packed[0] - packed[1]) > 1) | ((packed[0] == 255) != (packed[1] == 255))
            assert int(numbers(figure.status.inner_text().replace(",", ""))[1]) == differ.sum()
