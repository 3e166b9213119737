"""The interactive figures as a reader meets them: where each is, its parts, and how it is brought into its states."""

import itertools
import re
from operator import methodcaller as do

import numpy as np

from posembed.widgets import RotationFigure, SinusoidFigure
from posembed.widgets.probe import CONTROLS, SPLITS

from .chromium import into_view, styles, wait_until_still
from .figures import Figure, attributes, numbers

WORDS = ["I", "do", "like", "coding"]


class Shuffle(Figure):
    chapter = "why/permutation-equivariance.html"
    label = "Shuffle the words of a sentence"
    lines = ".pe-word, .pe-verdict"
    begins = (do("press", "First order"),)
    changed_by = (do("move", "I", "ArrowRight"), do("switch", "add positions"))
    shown_by = (
        [],
        [do("switch", "add positions"), do("move", "coding", "ArrowLeft")],
        [do("switch", "causal mask"), do("move", "coding", "ArrowLeft")],
    )

    def move(self, text, key):
        self.word(text).press(key)
        wait_until_still(self.page)

    def word(self, text):
        return self.root.locator(f".pe-word:text-is('{text}')")

    def order(self):
        return self.root.locator(".pe-word").all_inner_texts()

    def colours(self):
        """The colours of each word's output."""
        wait_until_still(self.page)
        columns = [self.root.locator(f".pe-column:has(.pe-word:text-is('{text}'))") for text in WORDS]
        return [styles(column.locator(".pe-cell"), "backgroundColor") for column in columns]

    def verdicts(self):
        """What stands under each word, and at the mean of all."""
        texts = self.root.locator(".pe-verdict").all_inner_texts()
        return dict(zip([*self.order(), "mean"], texts, strict=True))


class Lookup(Figure):
    chapter = "why/embedding-lookup.html"
    label = "Look up a row of an embedding table"
    lines = ".pe-pick"
    begins = (do("press", "Start again"), do("press", "2 cat"))
    changed_by = (do("press", "5 ran"), do("press", "Take a gradient step"))
    shown_by = ([], [do("press", "Take a gradient step")], [do("switch", "padding_idx=0"), do("press", "Start again")])

    def rows(self, part="tbody"):
        """The table's numbers; those of the foot are the product's."""
        rows = self.root.locator(f"{part} tr").all()
        return [numbers(" ".join(row.locator(".pe-number").all_inner_texts())) for row in rows]

    def picked(self):
        return self.root.locator(".pe-pick[aria-pressed=true]").all_inner_texts()

    def marked(self):
        """The ids whose row says that the last step has changed it."""
        marks = self.root.locator("tbody .pe-mark").all_inner_texts()
        return [id for id, mark in enumerate(marks) if "changed" in mark]


class Sinusoids(Figure):
    chapter = "encodings/sinusoidal-and-learned.html"
    label = "Explore the sinusoidal table"
    lines = ".pe-title, .pe-note"
    overlap, overhang = 2, 4
    begins = (do("choose", 64, 10000.0, 20),)
    changed_by = tuple(do("key", name, "ArrowRight") for name in ("width", "base", "position"))
    shown_by = tuple([do("choose", *choice)] for choice in ((64, 10000.0, 20), (4, 10.0, 20), (768, 1e6, 127)))

    def choose(self, width, base, position=20):
        state = SinusoidFigure().state()
        self.slide(width=state["widths"].index(width), base=state["bases"].index(base), position=position)

    def chart(self, title):
        return self.root.locator(".pe-chart").filter(has=self.page.locator(".pe-title", has_text=re.compile(title)))

    def titles(self):
        return self.root.locator(".pe-title").all_inner_texts()


class Rotation(Figure):
    chapter = "encodings/sinusoidal-and-learned.html"
    label = "Turn pairs of columns"
    lines = ".pe-title, .pe-note"
    overlap = 2
    begins = (
        do("view", "rope"),
        do("slide", query_at=9, key_at=3, shift_both=0),
        do("view", "offset"),
        do("slide", position_p=3, offset_k=5),
    )
    changed_by = (
        do("key", "offset k", "ArrowRight"),
        do("key", "hand 1 of pair 0", "ArrowRight"),
        do("view", "rope"),
        do("key", "shift both", "ArrowRight"),
        do("key", "offset on the curve", "ArrowRight"),
    )
    shown_by = (
        [do("slide", position_p=0, offset_k=0)],
        [do("slide", position_p=40, offset_k=24)],
        [do("view", "rope"), do("slide", query_at=0, key_at=32, shift_both=100)],
    )

    def view(self, name):
        self.choice("view").select_option(RotationFigure().views[name])

    def rows(self):
        """The numbers below each face, by their name."""
        return [
            {row.locator("th").inner_text(): numbers(" ".join(row.locator("td").all_inner_texts())) for row in rows}
            for rows in (face.locator("tbody tr").all() for face in self.root.locator(".pe-face").all())
        ]

    def hands(self):
        """The ends of the two hands of each face, right and up, in pixels from its middle."""
        drawn = np.array([numbers(d) for d in attributes(self.root.locator(".pe-face .pe-hand path"), "d")])
        return (drawn[:, 2:] - drawn[:, :2]) * [1, -1]

    def handle(self, pair, which):
        """The end of one of the two hands of a face that can be dragged."""
        return self.root.locator(".pe-face").nth(pair).locator(".pe-handle").nth(which)

    def places(self):
        """Where the four sliders of what turns stand."""
        names = ("position p", "offset k", "query at", "key at")
        sliders = [self.root.locator(".pe-slider").filter(has_text=name).locator("input") for name in names]
        return [int(slider.input_value()) for slider in sliders]

    def on_curve(self, share):
        """A place on the page, at a part of the width of the chart."""
        axis = self.root.locator(".pe-chart .pe-axis").bounding_box()
        return axis["x"] + share * axis["width"], axis["y"] + axis["height"] / 2

    def title(self):
        return self.root.locator(".pe-chart .pe-title").inner_text()

    def product(self):
        return numbers(self.title())[-1]


class Biases(Figure):
    chapter = "encodings/relative-positions.html"
    label = "Relative biases by head and offset"
    lines = ".pe-bias-title, .pe-bias-words"
    begins = (do("slide", head=2, query_at=3, offset=-20), do("switch", "trained"))
    changed_by = (
        do("key", "head", "ArrowRight"),
        do("key", "offset", "ArrowLeft"),
        do("switch", "trained"),
        do("switch", "bidirectional"),
        do("switch", "attention weights"),
    )

    def reset(self):
        # While it is on, one of the others is hidden.
        self.root.get_by_role("switch", name="trained").uncheck()
        super().reset()

    def panel(self, name):
        return self.root.locator(".pe-bias").filter(has=self.page.locator(f"strong:text-is('{name}')"))

    def chart(self, name):
        return self.panel(name).get_by_role("img")

    def value(self, name):
        return self.panel(name).locator(".pe-bias-value").inner_text()

    def words(self, name):
        """What stands below a chart."""
        return self.panel(name).locator(".pe-bias-words").last.inner_text()

    def point_at(self, name, offset, n_offsets):
        """A place on the page, in a chart up to the offset 0, above one of its offsets."""
        left, right = (float(*attributes(self.chart(name).locator(".pe-axis"), end)) for end in ("x1", "x2"))
        box = self.chart(name).bounding_box()
        share = 1 + (offset - 0.5) / n_offsets
        return box["x"] + left + share * (right - left), box["y"] + box["height"] / 3

    def states(self):
        for name in (None, "attention weights", "trained", "bidirectional"):
            if name:
                self.switch(name)
            for place, head in ((4, 0), (4, 3), (0, 0)):
                self.slide(query_at=place, head=head)
                for key in ("Home", "End"):
                    self.slider("offset").press(key)
                    yield


class Probe(Figure):
    chapter = "probing/position-tables.html"
    label = "Predicted against true position"
    lines = ".pe-probe-title, .pe-probe-errors :is(th, .pe-probe-number)"
    overhang = 4
    begins = (do("pick", table=0, split="even-odd", points="table"), do("slide", position=64))
    changed_by = (do("pick", split="all"), do("pick", points="random table"), do("key", "position", "ArrowRight"))
    shown_by = tuple(
        [do("pick", split=split, points=control), do("key", "position", end)]
        for split, control, end in itertools.product(SPLITS, CONTROLS, ("Home", "End"))
    )

    @property
    def chart(self):
        return self.root.get_by_role("img")

    def scales(self):
        """What a pixel across and a pixel down stand for: value = slope * pixel + where it begins."""
        return [np.polyfit(*np.transpose(axis), 1) for axis in self.chart.evaluate(TICKS)]

    def values(self, pixels):
        """What points across and down the chart, "points 2", stand for."""
        return np.column_stack([np.polyval(*each) for each in zip(self.scales(), np.transpose(pixels), strict=True)])

    def pick(self, **choices):
        """Choose a table by its place, a split and points by their names in the package."""
        for name, choice in choices.items():
            places = {"split": list(SPLITS), "points": list(CONTROLS)}.get(name, [])
            self.choice(name).select_option(index=places.index(choice) if choice in places else choice)

    def text(self, part):
        return self.root.locator(f".pe-probe-{part}").inner_text()

    def errors(self):
        return self.root.locator(".pe-probe-errors .pe-probe-number").all_inner_texts()

    def points(self):
        """The points inside the chart, as positions and predictions."""
        places = attributes(self.chart.locator(".pe-probe-point:not(.pe-probe-beyond)"), "transform")
        return self.values(np.array([numbers(place)[:2] for place in places]).reshape(-1, 2))

    def point_at(self, position):
        """A place on the page above a position of the chart."""
        across, left = self.scales()[0]
        box = self.chart.bounding_box()
        return box["x"] + (position - left) / across, box["y"] + box["height"] / 3


# Where the numbers below a chart and beside it stand, and what they say, shares such as 1/2 too.
TICKS = """(chart) => [["middle", "x", 0], ["end", "y", 4]].map(([anchor, axis, below]) =>
  [...chart.querySelectorAll(`.pe-tick[text-anchor=${anchor}]:not(.pe-probe-word)`)]
    .filter((text) => /^[\\d./]+$/.test(text.textContent))
    .map((text) => [Number(text.getAttribute(axis)) - below,
                    text.textContent.split("/").map(Number).reduce((above, below) => above / below)]))"""


class Helix(Figure):
    chapter = "probing/position-tables.html"
    label = "GPT-2 in space"
    lines = ".pe-note"
    # As it turns, the names of axes pass in front of each other.
    overlap = 20
    begins = (do("key", "turn", "Home"), *[do("key", "turn", "ArrowRight")] * 6)
    changed_by = (do("key", "turn", "ArrowRight"), do("key", "turn", "End"))
    shown_by = ([do("key", "turn", "Home")], *[[do("key", "turn", "ArrowRight")] * 5] * 4)


class Properties(Figure):
    chapter = "probing/three-properties.html"
    label = "Three properties, cell by cell"
    lines = ".pe-property-title, .pe-property-words"
    overlap = 2
    begins = (do("pick", 0), do("keep", 32, 16))
    changed_by = (do("down"), do("press", "mirror cell"), do("keep", 0, 1))

    def pick(self, index):
        self.choice("matrix").select_option(index=index)

    def down(self):
        self.map.press("ArrowDown")

    @property
    def map(self):
        return self.root.get_by_role("application")

    def point(self, row, column, n=48):
        """The middle of a cell, on the page, which is scrolled so that the map is seen."""
        into_view(self.map)
        box = self.map.locator(".pe-target").bounding_box()
        return box["x"] + (column + 0.5) / n * box["width"], box["y"] + (row + 0.5) / n * box["height"]

    def keep(self, row, column):
        self.page.mouse.click(*self.point(row, column))
        self.page.mouse.move(1, 1)

    def cell(self):
        """The cell that the figure speaks of."""
        place = re.match(r"Row (\d+), column (\d+), offset ([-−]?\d+): ", self.status.inner_text())
        row, column, offset = map(int, numbers(" ".join(place.groups())))
        assert offset == column - row
        return row, column

    def card(self, name):
        return self.root.locator(".pe-property").filter(has=self.page.locator(f"strong:text-is('{name}')"))

    def states(self):
        for index in range(len(self.given("matrices", "cell")["matrices"])):
            self.pick(index)
            for row, column in ((0, 0), (47, 0), (0, 47), (24, 24), (24, 12)):
                self.keep(row, column)
                yield


class Chart(Figure):
    """A chart of arms: a list of them, which are its switches and say their numbers."""

    lines = ".pe-chart-mean, .pe-chart-ends"
    overlap = 3
    switched = True

    def choose(self, **labels):
        """Choose a view by what stands in its selects."""
        for name, label in labels.items():
            self.choice(name).select_option(label=label)

    def numbers(self):
        """What stands beside each arm: mean and ends; none where it is taken as zero or was not run."""
        rows = self.root.locator("tbody tr:not(.pe-away) td:nth-child(2)").all_inner_texts()
        return [[float(each.replace("−", "-")) for each in re.findall(r"[-−]?\d*\.\d+", row)] for row in rows]


class LayerErrors(Chart):
    chapter = "nopos/how-it-knows.html"
    label = "Probe error by layer"
    begins = (do("slide", layer=2),)
    changed_by = (do("slide", layer=1), do("switch", "learned"), do("switch", "the paper’s curves"))

    def reset(self):
        self.choice("models").select_option(index=0)
        super().reset()

    def states(self):
        for index in range(4):
            self.choice("models").select_option(index=index)
            for end in ("Home", "End"):
                self.key("layer", end)
                yield
        for name in ("RoPE", "seed 5", "the paper’s curves"):
            self.choice("models").select_option(index=0)
            self.switch(name)
            yield


class Counting(Figure):
    chapter = "nopos/how-it-knows.html"
    label = "Count the tokens with a causal mask"
    lines = ".pe-count-row > *"
    overlap = 2
    begins = (do("switch", "causal mask"), do("choose", 4, 11))
    changed_by = (do("press", "next token"), do("press", "Shuffle the words"), do("switch", "causal mask"))
    shown_by = (
        *([do("choose", *choice)] for choice in ((1, 2), (5, 3), (10, 8), (11, 11))),
        [do("switch", "causal mask")],
    )

    def choose(self, token, n_positions):
        self.slide(token=token - 1, network_counts_up_to=n_positions - 2)

    def chips(self):
        return self.root.get_by_role("radio").all()

    def token(self):
        """The place that is chosen, wherever it is shown."""
        (chosen,) = [k for k, chip in enumerate(self.chips(), 1) if chip.get_attribute("aria-checked") == "true"]
        assert self.slider("token").get_attribute("aria-valuetext") == str(chosen)
        return chosen

    def words(self):
        return [chip.inner_text().split()[0] for chip in self.chips()]

    def results(self):
        return list(map(int, self.root.locator(".pe-count-results > *").all_inner_texts()))


class Doses(Chart):
    chapter = "probing/which-positions.html"
    label = "A dose of one property"
    begins = (do("choose", violated="monotonicity"), do("slide", dose=3, query=4))
    changed_by = (do("slide", dose=4), do("choose", violated="symmetry"), do("slide", query=31))
    shown_by = tuple(
        [do("choose", violated=name), do("slide", dose=dose)]
        for name in ("monotonicity", "translation invariance", "symmetry")
        for dose in (0, 4)
    )


MEASURES = ("share of the variance", "read from one state", "cost of shuffling position")


class Depth(Chart):
    chapter = "probing/once-enough.html"
    label = "Position and content by layer"
    begins = (
        do("choose", model="4 layers, width 56", measure=MEASURES[1]),
        do("slide", state=1),
    )
    changed_by = (
        do("slide", state=2),
        do("choose", model="12 layers, width 32", measure=MEASURES[0]),
        do("choose", measure=MEASURES[2]),
    )
    shown_by = tuple(
        [do("choose", model=model, measure=measure), do("slide", state=state)]
        for model, state in (
            ("4 layers, width 56", 4),
            ("12 layers, width 32", 12),
            ("hidden characters, 4 layers", 0),
        )
        for measure in MEASURES
    )


class Comparison(Chart):
    chapter = "longer/past-the-trained-length.html"
    label = "Loss past the trained length"
    axis = "position"
    begins = (do("reveal"), do("switch", "single seeds"), do("pick", "NoPos", 8))
    changed_by = (do("key", "position", "ArrowRight"), do("pick", "nothing", 8), do("switch", "RoPE"))
    shown_by = (
        *([do("pick", less, place)] for less, place in (("nothing", 0), ("learnable sinusoidal", 15), ("ALiBi", 8))),
        [do("switch", "single seeds")],
        [do("switch", "RoPE")],
    )

    def reveal(self):
        """Show what may be drawn first."""
        for button in self.root.get_by_role("button", name="Show the curve").all():
            button.click()

    def pick(self, less, place):
        self.choose(minus=less)
        self.slide(**{self.axis: place})


class Models(Figure):
    """Its models come when it is touched, and take a while for what they say."""

    chapter = "nopos/no-positions.html"
    label = "Two models read what you type"
    lines = ".pe-models-loss, .pe-word"
    switched = True
    begins = (do("pick", left="No positions", right="Learned table"), do("go", "Reset"))
    changed_by = (
        do("pick", positions="0, 2, 4, …: stretched"),
        do("type", "the people"),
        do("pick", right="No positions, masked"),
        do("go", "Shuffle letters"),
    )
    shown_by = (
        [],
        [do("type", "We are a nation of makers, and it is in our hands to go on here")],
        [do("pick", left="ALiBi", right="RoPE", positions="a gap in the middle")],
        [do("pick", right="No positions, masked"), do("slide", guess_at_place=3, layer=3)],
    )

    def slide(self, **places):
        super().slide(**places)
        self.wait()

    def pick(self, left=None, right=None, positions=None):
        """Choose by what stands in the selects."""
        for name, label in {"left model": left, "right model": right, "positions": positions}.items():
            if label:
                self.choice(name).select_option(label=label)
        self.wait()

    def go(self, name):
        self.press(name)
        self.wait()

    def type(self, text):
        self.root.get_by_role("textbox").fill(text)
        self.wait()

    def wait(self):
        """Until the models have read it."""
        self.page.locator(f"{self.selector}[aria-busy=false]").wait_for()

    def losses(self):
        return [numbers(each)[0] for each in self.root.locator(".pe-models-loss").all_inner_texts()]

    def guesses(self, side):
        """The likeliest characters and their chances."""
        rows = self.root.locator(f".pe-models-{side} .pe-models-next li").all()
        return [(row.locator("b").inner_text(), numbers(row.inner_text())[-1]) for row in rows]


class Repairs(Figure):
    chapter = "encodings/museum-of-bugs.html"
    label = "The clock that stands still, broken and mended"
    lines = ".pe-repair-line"
    begins = (do("forget"), do("key", "wipe", "Home"))
    changed_by = (do("key", "wipe", "ArrowRight"), do("line", 0), do("key", "wipe", "End"))
    shown_by = ([do("key", "wipe", "End")], [do("line", 3)], [do("line", 2), do("key", "wipe", "ArrowLeft")])

    def line(self, number):
        """Press a line of the broken code."""
        self.root.locator(".pe-repair-line").nth(number).click()

    def forget(self):
        for pressed in self.root.locator("[aria-pressed=true]").all():
            pressed.click()


KINDS = [
    *(Shuffle, Lookup, Sinusoids, Rotation, Biases, Probe, Helix, Properties, LayerErrors, Counting, Depth, Doses),
    *(Comparison, Models, Repairs),
]
