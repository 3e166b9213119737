"""Figure 9, the errors of a probe by layer, driven by mouse, touch and keyboard; its numbers against the study's."""

import re

import numpy as np
import pytest
from nopos_runs import ALL, invented_error, invented_runs, watched_steps
from playwright.sync_api import expect

from posembed.experiments import interval
from posembed.experiments.nopos import PUBLISHED_SCHEMES, SMALL, published_probe
from posembed.widgets import LayerErrorFigure
from posembed.widgets.layer_errors import GROUPS, NAMES

from .checks import (
    assert_accessible,
    assert_announces,
    assert_drawings_follow_the_window,
    assert_keeps_its_height,
    assert_nothing_is_clipped,
    assert_tab_leads_to,
    assert_texts_are_large_enough,
    assert_texts_of_drawings_stand_out,
    paper_in,
)
from .chromium import into_view, printed, serve_folder, styles
from .colours import LIGHT_AND_DARK, VISIBLE, contrast, ink_and_paper, luminance
from .figures import Figure, number, numbers, touch, write_alone

SEEDS = [1, 2, 3, 4, 5]
WATCHED = watched_steps()
N_LAYERS = {"causal": 4, "watched": 4, "larger": 6, "masked": 4}
MIDDLE = {"causal": 16, "watched": 16, "larger": 32, "masked": 16}
# The state has four decimals, and a drawing's paths have two decimals of a pixel, of which the chart has hundreds.
ROUNDING, DRAWN = 0.5e-4 + 1e-9, 0.002


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The address of a folder with two such pages: one with invented runs of all groups, one with the package's own."""
    folder = tmp_path_factory.mktemp("layers")
    for kind, figure in ((LayerErrors, LayerErrorFigure(invented_runs())), (Stored, LayerErrorFigure())):
        write_alone(kind, figure, folder)
    with serve_folder(folder) as address:
        yield address


class LayerErrors(Figure):
    chapter = "layers.html"
    label = "Probe error by layer"
    lines = ".pe-layers-numbers :is(th, td)"
    overlap = 3

    def reset(self):
        self.page.mouse.up()
        self.page.mouse.move(1, 1)
        if "watched" in self.groups():
            self.choose("watched")
            self.slide(steps=len(WATCHED) - 1)
        self.choose("causal")
        for switch in self.root.get_by_role("switch", checked=False).all()[::-1]:
            switch.click()
        self.slide(layer=2)
        into_view(self.root)

    def groups(self):
        return [group["key"] for group in self.given("groups", "published")["groups"]]

    def choose(self, group):
        self.choice("models").select_option(index=self.groups().index(group))

    def only(self, schemes=(), seeds=()):
        """Switch off all but these."""
        for names, kept in (
            (NAMES.values(), [NAMES[each] for each in schemes]),
            (seed_names(SEEDS), seed_names(seeds)),
        ):
            for name in names:
                switch = self.root.get_by_role("switch", name=name, exact=True)
                if kept and switch.is_enabled() and switch.is_checked() != (name in kept):
                    switch.click()

    @property
    def chart(self):
        return self.root.get_by_role("img")

    def heading(self):
        return self.root.locator("caption").inner_text()

    def row(self, name):
        """The cells of a row: the error and its interval, the share, and the paper's."""
        head = self.page.get_by_role("rowheader", name=name, exact=True)
        return self.root.get_by_role("row").filter(has=head).get_by_role("cell").all_inner_texts()

    def scales(self):
        """What a pixel across and a pixel down stand for, by the labels of the grid: value = a + b * pixel."""
        ticks = self.chart.evaluate(TICKS)
        return [np.polyfit(*axis, 1)[::-1] for axis in ticks]

    def points(self, look, scheme):
        """The points of the curves of a scheme that look so, as depths and shares, a list for each curve."""
        (left, across), (low, up) = self.scales()
        paths = self.chart.locator(f"[data-scheme={scheme}] {look}").evaluate_all(
            "(paths) => paths.map((path) => path.getAttribute('d'))"
        )
        pixels = [np.array(numbers(path)).reshape(-1, 2) for path in paths]
        return [np.column_stack([left + across * each[:, 0], low + up * each[:, 1]]) for each in pixels]

    def point_at(self, depth, share=0.7):
        """A place on the page, by what it stands for in the chart."""
        (left, across), (low, up) = self.scales()
        box = self.chart.bounding_box()
        return box["x"] + (depth - left) / across, box["y"] + (share - low) / up

    def states(self):
        """All groups, steps and ends, and switches on and off."""
        for group, n_layers in N_LAYERS.items():
            self.choose(group)
            for layer in (0, n_layers):
                self.slide(layer=layer)
                yield
            for step in range(len(WATCHED)) if group == "watched" else ():
                self.slide(steps=step)
                yield
        for schemes, seeds in ((["rope"], SEEDS), (["rope", "nopos"], [1, 2, 3, 4]), (list(NAMES), [5])):
            self.choose("causal")
            self.only(schemes, seeds)
            yield
            self.choose("masked")
            yield
        for name in [*NAMES.values(), "seed 5", "the paper’s curves"]:
            self.choose("causal")
            self.root.get_by_role("switch", name=name, exact=True).click()
            yield


class Stored(LayerErrors):
    chapter = "stored.html"


# Where the numbers below the chart and beside it stand, and what they say.
TICKS = """(chart) => [["middle", "x", 0], ["end", "y", 4]].map(([anchor, axis, below]) => {
  const value = (words) => words.split("/").map(Number).reduce((above, below) => above / below);
  const texts = [...chart.querySelectorAll(`.pe-tick[text-anchor=${anchor}]`)]
    .filter((text) => /^[\\d./]+$/.test(text.textContent));
  return [(text) => Number(text.getAttribute(axis)) - below, (text) => value(text.textContent)]
    .map((read) => texts.map(read));
})"""


def seed_names(seeds):
    return [f"seed {seed}" for seed in seeds]


def seeds_of(group):
    return SEEDS if group in ("causal", "masked") else SEEDS[:3]


def last_step(group):
    return ALL[GROUPS[group][1].format("nopos")].runs[0].steps


def errors(group, scheme, step=None, seeds=None):
    """What the runs of a group hold, "seed layer"."""
    runs = {run.seed: run for run in ALL[GROUPS[group][1].format(scheme)].runs}
    chosen = [runs[seed] for seed in (seeds or seeds_of(group))]
    step = last_step(group) if step is None else step
    return np.array([[invented_error(run, step, layer) for layer in range(run.n_layers + 1)] for run in chosen])


@pytest.fixture
def open_figure(opened):
    return lambda width=1280, **options: opened(LayerErrors, width, **options)


def assert_numbers(figure, group, layer, step=None):
    """The table and the sentence have the numbers of all seeds of a group."""
    middle, n_layers = MIDDLE[group], N_LAYERS[group]
    said = figure.status.inner_text()
    for scheme, name in NAMES.items():
        error, share, paper = figure.row(name)
        if scheme not in GROUPS[group][2]:
            assert (error, share, paper) == ("not probed", "", "")
            assert f"{name} by" not in said
            continue
        its = interval(errors(group, scheme, step)[:, layer].tolist())
        assert numbers(error) == pytest.approx([its.mean, its.low, its.high], abs=0.05 + ROUNDING)
        words = " ".join(error.split())
        assert re.search(
            rf"{name} (off )?by {re.escape(words.split()[0])}( positions)? {re.escape(words.split(' ', 1)[1])}", said
        )
        assert float(share) == pytest.approx(its.mean / middle, abs=0.005 + ROUNDING)
        if scheme in PUBLISHED_SCHEMES:
            assert float(paper) == pytest.approx(published_probe(scheme)[24 * layer // n_layers], abs=0.005 + ROUNDING)
        else:
            assert paper == ""
    assert figure.row("always the middle")[:2] == [f"{middle:.1f}", "1.00"]
    assert figure.row("at random")[:2] == [f"{4 * middle / 3:.1f}", "1.33"]
    after = "untrained" if step == 0 else f"after {last_step(group) if step is None else step} steps"
    place = f"ayer {layer} of {n_layers}, {after}"
    assert figure.heading() == f"Error at l{place}: mean of {len(seeds_of(group))} seeds, 95\u00a0% interval"
    assert f"L{place}, mean of {len(seeds_of(group))} seeds: " in said
    assert said.endswith(f"; always the middle by {middle:.1f}.")


@pytest.mark.parametrize("group", GROUPS)
def test_each_layer_has_the_study_s_numbers(open_figure, width, group):
    figure = open_figure(width)
    figure.choose(group)
    expect(figure.status).to_contain_text(re.compile(r"^\w+ models of \d layers, width \d+, trained for \d+ steps on "))
    for layer in range(N_LAYERS[group] + 1):
        figure.slide(layer=layer)
        assert_numbers(figure, group, layer)


def test_the_watched_models_are_read_at_each_step(open_figure, width):
    figure = open_figure(width)
    figure.choose("watched")
    for place, step in enumerate(WATCHED):
        figure.slide(steps=place)
        assert_numbers(figure, "watched", 2, step)
        (mean,) = figure.points(".pe-layers-mean", "alibi")
        assert mean[:, 1] == pytest.approx(errors("watched", "alibi", step).mean(axis=0) / 16, abs=DRAWN)
    # Others were probed once, and the step is kept.
    figure.slide(steps=2)
    figure.choose("causal")
    expect(figure.slider("steps")).to_be_disabled()
    expect(figure.slider("steps")).to_have_attribute("aria-valuetext", f"{SMALL.steps} of {SMALL.steps}")
    figure.choose("watched")
    expect(figure.slider("steps")).to_have_attribute("aria-valuetext", f"{WATCHED[2]} of {SMALL.steps}")


@pytest.mark.parametrize("group", GROUPS)
def test_the_curves_are_the_errors(open_figure, width, group):
    figure = open_figure(width)
    figure.choose(group)
    depths = np.linspace(0, 1, N_LAYERS[group] + 1)
    for scheme in GROUPS[group][2]:
        wanted = errors(group, scheme) / MIDDLE[group]
        (mean,), seeds = (figure.points(look, scheme) for look in (".pe-layers-mean", ".pe-layers-seed"))
        assert mean == pytest.approx(np.column_stack([depths, wanted.mean(axis=0)]), abs=DRAWN)
        assert len(seeds) == len(wanted)
        for line, of_seed in zip(seeds, wanted, strict=True):
            assert line[:, 1] == pytest.approx(of_seed, abs=DRAWN)
    drawn = figure.chart.locator(".pe-layers-mean").count()
    assert drawn == len(GROUPS[group][2])


def test_the_paper_s_curves_stand_behind(open_figure, width):
    figure = open_figure(width)
    for scheme in PUBLISHED_SCHEMES:
        (curve,) = figure.points(".pe-layers-paper", scheme)
        wanted = np.column_stack([np.linspace(0, 1, 25), published_probe(scheme)])
        assert curve == pytest.approx(wanted, abs=DRAWN)
    assert figure.points(".pe-layers-paper", "rope") == []
    assert set(styles(figure.chart.locator(".pe-layers-paper"), "strokeDasharray")) == {"5px, 3px"}
    assert set(styles(figure.chart.locator(".pe-layers-mean"), "strokeDasharray")) == {"none"}
    figure.switch("the paper’s curves")
    expect(figure.status).to_have_text("The paper’s curves are hidden.")
    assert figure.chart.locator(".pe-layers-paper, .pe-layers-theirs").count() == 0
    assert {figure.row(name)[2] for name in NAMES.values()} == {""}
    figure.switch("the paper’s curves")
    figure.root.get_by_role("switch", name="ALiBi").click()
    assert figure.chart.locator(".pe-layers-paper").count() == len(PUBLISHED_SCHEMES) - 1


def test_the_guesses_are_lines_with_names(open_figure, width):
    figure = open_figure(width)
    _, (low, up) = figure.scales()
    for look, share in ((".pe-layers-middle", 1), (".pe-layers-random", (64**2 - 1) / (3 * 64) / 16)):
        height = numbers(figure.chart.locator(look).get_attribute("d"))[1]
        assert low + up * height == pytest.approx(share, abs=1e-6)
    assert figure.chart.locator(".pe-layers-word").all_text_contents() == ["always the middle", "at random"]


def test_a_scheme_is_switched_off_and_on(open_figure, width):
    figure = open_figure(width)
    switch = figure.root.get_by_role("switch", name="learned")
    switch.click()
    expect(switch).not_to_be_checked()
    assert figure.row("learned") == ["", "", ""]
    assert figure.points(".pe-layers-mean", "learned") == []
    assert "learned" not in figure.status.inner_text()
    figure.choose("masked")
    expect(switch).not_to_be_checked()
    for name in ("sinusoidal", "ALiBi", "RoPE"):
        expect(figure.root.get_by_role("switch", name=name)).to_be_disabled()
    switch.focus()
    figure.page.keyboard.press("Space")
    expect(switch).to_be_checked()
    assert_numbers(figure, "masked", 2)
    figure.only(["learned"])
    switch.click()
    expect(figure.status).to_have_text("No scheme is switched on.")
    assert figure.chart.locator(".pe-layers-mean").count() == 0


@pytest.mark.parametrize(
    ("group", "seeds", "words"),
    [
        ("causal", [1, 3, 5], "mean of seeds 1, 3 and 5"),
        ("masked", [4], "seed 4 alone"),
        ("larger", [2, 3], "mean of seeds 2 and 3"),
    ],
)
def test_with_some_seeds_off_their_mean_alone_is_shown(open_figure, width, group, seeds, words):
    figure = open_figure(width)
    figure.choose(group)
    figure.only(seeds=seeds)
    layer = N_LAYERS[group] // 2
    wanted = errors(group, "nopos", seeds=seeds)
    error, share, _ = figure.row("no positions")
    assert numbers(error) == pytest.approx([wanted[:, layer].mean()], abs=0.05 + ROUNDING)
    assert float(share) == pytest.approx(wanted[:, layer].mean() / MIDDLE[group], abs=0.005 + ROUNDING)
    (mean,), lines = (figure.points(look, "nopos") for look in (".pe-layers-mean", ".pe-layers-seed"))
    assert mean[:, 1] == pytest.approx(wanted.mean(axis=0) / MIDDLE[group], abs=DRAWN)
    assert [line[:, 1] for line in lines] == [pytest.approx(each / MIDDLE[group], abs=DRAWN) for each in wanted]
    assert figure.heading().endswith(f": {words}")
    assert f", {words}: no positions off by {error} positions; learned by " in figure.status.inner_text()


def test_seeds_that_a_group_lacks_cannot_be_switched(open_figure, width):
    figure = open_figure(width)
    figure.only(seeds=[4, 5])
    figure.choose("watched")
    for seed in SEEDS:
        switch = figure.root.get_by_role("switch", name=f"seed {seed}")
        assert switch.is_enabled() == (seed <= 3)
        expect(switch).not_to_be_checked()
    assert figure.status.inner_text().endswith(" No seed is switched on.")
    figure.root.get_by_role("switch", name="seed 2").focus()
    figure.page.keyboard.press("Enter")
    assert figure.heading().endswith(": seed 2 alone")
    figure.choose("causal")
    assert figure.heading().endswith(": mean of seeds 2, 4 and 5")


def test_the_depth_is_kept_where_there_are_more_layers(open_figure, width):
    figure = open_figure(width)
    for layer, wanted in ((0, 0), (2, 3), (4, 6)):
        figure.choose("causal")
        figure.slide(layer=layer)
        figure.choose("larger")
        expect(figure.slider("layer")).to_have_attribute("aria-valuetext", f"{wanted} of 6")


def marks(figure, scheme):
    """The widths of the marks of a curve, layer by layer."""
    return figure.chart.locator(f"[data-scheme={scheme}] .pe-layers-mark:not(.pe-layers-theirs)").evaluate_all(
        "(marks) => marks.map((mark) => mark.getBBox().width)"
    )


def test_arrow_keys_choose_a_layer(open_figure, width):
    figure = open_figure(width)
    slider = figure.slider("layer")
    slider.focus()
    for key, layer in [("Home", 0), ("ArrowRight", 1), ("ArrowUp", 2), ("End", 4), ("ArrowLeft", 3)]:
        figure.page.keyboard.press(key)
        expect(slider).to_have_attribute("aria-valuetext", f"{layer} of 4")
        assert_numbers(figure, "causal", layer)
        widths = marks(figure, "nopos")
        assert [width > min(widths) for width in widths] == [k == layer for k in range(5)]
        (left, across), _ = figure.scales()
        cursor = number(figure.chart.locator(".pe-layers-cursor").get_attribute("d"))
        assert left + across * cursor == pytest.approx(layer / 4, abs=1e-6)


def test_the_mouse_chooses_the_nearest_layer(open_figure, width):
    figure = open_figure(width)
    for group in ("causal", "larger"):
        figure.choose(group)
        for depth in (0.02, 0.4, 0.63, 0.97):
            figure.page.mouse.move(*figure.point_at(depth))
            layer = round(depth * N_LAYERS[group])
            expect(figure.slider("layer")).to_have_attribute("aria-valuetext", f"{layer} of {N_LAYERS[group]}")
            assert_numbers(figure, group, layer)


def test_a_finger_chooses_a_layer(open_figure):
    figure = open_figure(390, has_touch=True, is_mobile=True)
    figure.page.touchscreen.tap(*figure.point_at(0.26))
    assert_numbers(figure, "causal", 1)
    for words in ("mean of seeds 1, 2, 4 and 5", "mean of 5 seeds"):
        figure.root.get_by_role("switch", name="seed 3").tap()
        expect(figure.root.locator("caption")).to_contain_text(f": {words}")
    scrolled = figure.page.evaluate("scrollY")
    touch(figure.page, [figure.point_at(depth / 10) for depth in range(3, 11)])
    assert_numbers(figure, "causal", 4)
    assert figure.page.evaluate("scrollY") == scrolled
    assert figure.chart.evaluate("(node) => getComputedStyle(node).touchAction") == "pan-y"


def test_schemes_are_told_apart_without_colour(open_figure):
    figure = open_figure()
    shapes = {
        figure.chart.locator(f"[data-scheme={scheme}] .pe-layers-mark").last.get_attribute("d") for scheme in NAMES
    }
    assert len(shapes) == len(NAMES)
    for scheme, name in NAMES.items():
        mark = figure.chart.locator(f"[data-scheme={scheme}] .pe-layers-mark").last
        sign = figure.root.locator("tr", has_text=name).locator(".pe-layers-mark")
        assert styles(mark, "fill") == styles(sign, "fill")


def test_changes_are_announced(open_figure):
    figure = open_figure()
    changes = [
        lambda: figure.choose("watched"),
        lambda: figure.slide(layer=1),
        lambda: figure.slide(steps=1),
        lambda: figure.switch("learned"),
        lambda: figure.switch("seed 2"),
        lambda: figure.switch("the paper’s curves"),
    ]
    assert_announces(figure, changes)


def test_the_chart_says_what_it_shows(open_figure):
    figure = open_figure()
    said = figure.status.inner_text()
    expect(figure.chart).to_have_accessible_name(f"Probe error by layer: small causal: 4 layers, width 64. {said}")


def test_tab_reaches_every_control_and_shows_where_it_is(open_figure):
    figure = open_figure()
    figure.choose("watched")
    figure.choice("models").focus()
    switch = lambda name: figure.root.get_by_role("switch", name=name, exact=True)
    controls = [
        *(switch("the paper’s curves"), figure.slider("steps"), *map(switch, seed_names(SEEDS[:3]))),
        *(figure.slider("layer"), *(switch(NAMES[scheme]) for scheme in GROUPS["watched"][2])),
    ]
    assert_tab_leads_to(figure, controls)
    figure.page.keyboard.press("Tab")
    assert figure.root.locator(":focus").count() == 0


def test_nothing_moves_under_reduced_motion(open_figure):
    figure = open_figure(reduced_motion="reduce")
    figure.choose("larger")
    figure.switch("learned")
    assert figure.page.evaluate("document.getAnimations().length") == 0


@pytest.mark.parametrize("size", [320, 390, 1280])
def test_nothing_is_clipped(open_figure, size):
    assert_nothing_is_clipped(open_figure(size))


@pytest.mark.parametrize("size", [320, 390, 430, 520, 1280])
def test_the_figure_keeps_its_height(open_figure, size):
    assert_keeps_its_height(open_figure(size))


def test_drawings_follow_the_width_of_the_window(open_figure):
    assert_drawings_follow_the_window(open_figure())


@pytest.mark.parametrize("colours", LIGHT_AND_DARK)
def test_accessible_after_use(open_figure, width, colours):
    figure = open_figure(width, color_scheme=colours)
    assert_accessible(figure)
    figure.choose("masked")
    figure.switch("seed 2")
    assert_accessible(figure)


@pytest.mark.parametrize("colours", LIGHT_AND_DARK)
def test_drawings_can_be_read(open_figure, width, colours):
    figure = open_figure(width, color_scheme=colours)
    paper = paper_in(figure, colours)
    assert_texts_are_large_enough(figure)
    assert_texts_of_drawings_stand_out(figure, paper)
    lines = ".pe-layers-mean, .pe-layers-paper, .pe-layers-middle, .pe-layers-random, .pe-layers-cursor"
    seen = [*styles(figure.chart.locator(lines), "stroke"), *styles(figure.chart.locator(".pe-layers-mark"), "fill")]
    assert min(contrast(colour, paper) for colour in seen if colour != paper) >= VISIBLE


def test_paper_has_no_controls_and_all_numbers(open_figure):
    figure = open_figure(color_scheme="dark")
    with printed(figure.page):
        assert not [node for node in figure.root.locator("input, select, button").all() if node.is_visible()]
        assert figure.chart.is_visible()
        assert all(figure.root.get_by_role("rowheader", name=name).is_visible() for name in NAMES.values())
        assert luminance(ink_and_paper(figure.root)[1]) == 1


def test_readable_without_javascript(open_address, site):
    page = open_address(f"{site}/{LayerErrors.chapter}", java_script_enabled=False)
    rows = page.locator(".posembed-root tbody tr").all_inner_texts()
    assert [row.split()[:2] for row in rows] == [[str(SMALL.steps), str(layer)] for layer in range(5)]
    assert "needs JavaScript" in page.locator("caption").inner_text()


def test_opens_from_a_file(open_address, tmp_path):
    page = write_alone(LayerErrors, LayerErrorFigure(invented_runs(), group="masked"), tmp_path)
    figure = LayerErrors(open_address(page.as_uri()))
    figure.slide(layer=3)
    assert_numbers(figure, "masked", 3)


def test_the_package_s_own_runs_are_shown(opened, width):
    figure = opened(Stored, width)
    for group in figure.given("groups", "published")["groups"]:
        figure.choose(group["key"])
        for layer in range(group["n_layers"] + 1):
            figure.slide(layer=layer)
            for scheme in group["schemes"]:
                wanted = scheme["intervals"][-1][layer]
                assert numbers(figure.row(NAMES[scheme["key"]])[0]) == pytest.approx(wanted, abs=0.05 + ROUNDING)
