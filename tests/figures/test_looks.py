"""Each scheme has one look in all figures, which readers with any colour vision tell from the others."""

import itertools
import re

import numpy as np
import pytest
import torch
from colorspacious import cspace_convert
from matplotlib.colors import to_hex

from posembed import scheme, schemes, widgets
from posembed.encodings import KERPLE
from posembed.figures import COLOURS, DIVERGING, LOOKS, bias_curves, curves, look_of, seed_scores
from posembed.figures.looks import DASHES, DIVERGING_ON_DARK, HUES, NOTHING, cells_on_dark, looks_of, named, on_dark

DRAWN = {
    *("nopos", "sinusoidal", "learned", "learnable_sinusoidal", "shaw", "t5"),
    *("alibi", "kerple", "fire", "rope", "xpos", "pope", "cope", "forgetting"),
}
PAPERS = {"light": "#ffffff", "dark": "#161b22"}
# WCAG 2.2, 1.4.11: parts of a graphic.
CONTRAST = 3
# In CAM02-UCS, where 1 is about a difference that is just seen side by side. Thin lines need far more.
APART = 15
VISIONS = {
    "any": "sRGB1",
    **{
        name: {"name": "sRGB1+CVD", "cvd_type": f"{name}omaly", "severity": 100}
        for name in ("protan", "deuteran", "tritan")
    },
}


def rgb(colour):
    return np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255


def seen(colour, vision):
    """Where a colour is for a reader; at severity 100 the simulation is that of -anopia."""
    return cspace_convert(np.clip(cspace_convert(rgb(colour), VISIONS[vision], "sRGB1"), 0, 1), "sRGB1", "CAM02-UCS")


def contrast(one, other):
    low, high = sorted(cspace_convert(rgb(each), "sRGB1", "XYZ1")[1] for each in (one, other))
    return (high + 0.05) / (low + 0.05)


def test_each_scheme_has_a_look():
    assert LOOKS.keys() == DRAWN <= set(schemes())


@pytest.mark.parametrize("vision", VISIONS)
@pytest.mark.parametrize("paper", PAPERS)
def test_schemes_with_one_dash_have_colours_apart(paper, vision):
    near = {}
    for one, other in itertools.combinations(LOOKS, 2):
        if LOOKS[one].dash == LOOKS[other].dash:
            colours = (getattr(LOOKS[each], paper) for each in (one, other))
            first, second = (seen(colour, vision) for colour in colours)
            near[one, other] = float(np.linalg.norm(first - second))
    assert len(near) > 20
    assert {pair: apart for pair, apart in near.items() if apart < APART} == {}


def test_the_simulation_finds_what_was_wrong():
    """Green and orange-red of the same lightness are far apart for most readers, and close for deuteranopes."""
    green, red = "#7a9a01", "#c8703a"
    apart = {each: np.linalg.norm(seen(green, each) - seen(red, each)) for each in ("any", "deuteran")}
    assert apart["any"] > 30 and apart["deuteran"] < APART


def test_within_a_family_dashes_and_markers_differ():
    for hue in {look.hue for look in LOOKS.values()}:
        family = [look for look in LOOKS.values() if look.hue == hue]
        assert len({look.dash for look in family}) == len(family)
    assert len({look.marker for look in LOOKS.values()}) == len(LOOKS)
    assert {look.dash for look in LOOKS.values()} <= DASHES.keys()


@pytest.mark.parametrize("paper", PAPERS)
def test_each_colour_stands_out_from_the_paper(paper):
    assert {name for name, look in LOOKS.items() if contrast(getattr(look, paper), PAPERS[paper]) < CONTRAST} == set()


def test_pages_have_exactly_these_colours():
    style = widgets.BiasFigure.stylesheet()
    found = [(name, colour) for name, colour in re.findall(r"--pe-(\w+): (#\w{6});", style) if name in LOOKS]
    assert found == [(name, look.light) for name, look in LOOKS.items()] + [
        (name, look.dark) for name, look in LOOKS.items()
    ]
    selectors = ('html[data-theme="dark"]', 'html[theme="dark"]', 'body[data-jp-theme-light="false"]')
    on_dark = ", ".join(f"{each} .pe-figure" for each in selectors)
    (dark,) = re.findall(rf"@media not print {{ {re.escape(on_dark)} {{ ([^}}]*--pe-alibi[^}}]*) }} }}", style)
    assert f"--pe-alibi: {LOOKS['alibi'].dark};" in dark
    for surface in PAPERS.values():
        assert f"--pe-surface: {surface};" in style
    for name in LOOKS:
        assert f".pe-scheme-{name} {{ --pe-series: var(--pe-{name}); }}" in style


@pytest.mark.parametrize(
    ("label", "wanted"),
    [
        *((name, name) for name in sorted(DRAWN)),
        ("NoPos", "nopos"),
        ("no positions", "nopos"),
        ("learned", "learned"),
        ("a learned table", "learned"),
        ("sinusoidal, width 384", "sinusoidal"),
        ("learnable sinusoidal", "learnable_sinusoidal"),
        ("ALiBi, head 1", "alibi"),
        ("power 1 (ALiBi)", "alibi"),
        ("Shaw's bias, limit 4", "shaw"),
        ("RoPE kept", "rope"),
        ("RoPE dropped", "rope"),
        ("a rotary embedding", "rope"),
        ("T5", "t5"),
        ("xPos", "xpos"),
        ("PoPE", "pope"),
        ("KERPLE", "kerple"),
        # No scheme, or several.
        ("none", None),
        ("input", None),
        ("table kept", None),
        ("GPT-2's start", None),
        ("firework", None),
        ("learned+t5", None),
        ("NoPos minus learned", None),
        ("RoPE without positions in one layer", None),
        ("", None),
    ],
)
def test_the_scheme_that_a_label_names(label, wanted):
    assert named(label) == wanted
    assert look_of(label) == (LOOKS[wanted] if wanted else None)


def drawn(axes):
    return [(line.get_color(), line.get_linestyle(), line.get_marker()) for line in axes.lines]


def test_a_scheme_is_drawn_alike_in_every_figure():
    short, long = [1.0] * 12, [1.0] * 13
    first = curves({"a guess": short, "ALiBi": short, "no positions": short}, alt="Lines.").axes[0]
    second = curves({"alibi": long, "RoPE": long}, alt="Lines.").axes[0]
    alibi, nopos = LOOKS["alibi"], LOOKS["nopos"]
    assert drawn(first)[1:] == [(each.light, each.dash, each.marker) for each in (alibi, nopos)]
    # Other series are drawn as they were; many points have no markers.
    assert drawn(first)[0] == (COLOURS[0], "-", "None")
    assert drawn(second)[0] == (alibi.light, alibi.dash, "None")
    seeds, reach, mean = seed_scores({"ALiBi": [1.0, 2.0]}, alt="A row.").axes[0].lines
    assert {line.get_color() for line in (seeds, reach, mean)} == {alibi.light}
    assert seeds.get_marker() == mean.get_marker() == alibi.marker


@pytest.mark.parametrize(
    "labels",
    [
        sorted(DRAWN) + [str(n) for n in range(12)],
        ["learned a", "learned b", "learned c", "learnable sinusoidal", "sinusoidal", "x", "y"],
        [f"ALiBi, head {head}" for head in range(1, 9)],
        [f"head {n}" for n in range(24)],
    ],
)
def test_no_two_series_have_the_same_colour_and_line(labels):
    looks = [(look["color"], look["linestyle"]) for look in looks_of(labels)]
    assert len(set(looks)) == len(labels)


def test_other_series_keep_away_from_the_hues_of_schemes():
    colours = [look["color"] for look in looks_of(["learned", "RoPE", "one", "another"])]
    assert {HUES[colour] for colour in colours[2:]} & {"blue", "vermilion"} == set()


def test_heads_of_a_scheme_have_its_hue():
    axes = bias_curves(scheme("alibi", n_heads=8), offsets=torch.arange(-20, 1), heads=[1, 2, 4, 8], alt="Lines.").axes[
        0
    ]
    (first, *others) = drawn(axes)
    assert first == (LOOKS["alibi"].light, "-", "None")
    hues = [cspace_convert(rgb(colour), "sRGB1", "JCh")[2] for colour, _, _ in (first, *others)]
    assert max(hues) - min(hues) < 20
    # A label that names another scheme has that one's look; the kernel of the others is known by its class.
    kernels = {"log": KERPLE(1), "power 1 (ALiBi)": KERPLE(1, kernel="power")}
    log, power = drawn(bias_curves(kernels, offsets=torch.arange(-20, 1), alt="Lines.").axes[0])
    assert (log[0], power[0]) == (LOOKS["kerple"].light, LOOKS["alibi"].light)


def test_a_scheme_without_a_look_is_one_of_the_other_series():
    found = looks_of(["mine"], {"mine": "mine:RootDistance"})
    assert found == looks_of(["anything"])


@pytest.mark.parametrize("vision", VISIONS)
@pytest.mark.parametrize("colours", [DIVERGING, DIVERGING_ON_DARK], ids=["light", "dark"])
def test_maps_tell_large_numbers_from_small_and_signs_apart(colours, vision):
    """From zero on each step is seen, in one direction of lightness; the same numbers of both signs are apart."""
    at = np.linspace(0, 1, 21)
    places = np.array([seen(to_hex(colours(each)), vision) for each in at])
    light = places[:, 0]
    for half in (light[10:], light[10::-1]):
        steps = np.diff(half)
        assert (steps > 0).all() or (steps < 0).all()
    assert np.linalg.norm(places[:8] - places[:12:-1], axis=1).min() > APART


def test_cells_on_dark_have_the_same_numbers():
    at = np.linspace(0, 1, 33)
    light, dark = ((each(at, bytes=True)[:, :3]) for each in (DIVERGING, DIVERGING_ON_DARK))
    assert np.abs(cells_on_dark(light).astype(int) - dark).max() <= 2
    # Half of the map is that of numbers of one sign; where there is none, the cell is grey on both.
    assert (cells_on_dark(np.uint8([[0xC9, 0xD1, 0xD9]])) == [0x9A, 0xA4, 0xB0]).all()
    # There it is told from zero, and from what lies near it.
    near = [to_hex(DIVERGING_ON_DARK(0.5 + each)) for each in (-0.1, 0, 0.1)]
    assert min(contrast(on_dark(NOTHING), each) for each in near) > 3


def test_words_in_cells_are_readable_on_dark():
    """Numbers in cells are drawn up to 1 / 2.4 of the colours."""
    word = np.array([int(on_dark("#24292f")[k : k + 2], 16) for k in (1, 3, 5)]) / 255
    cells = [to_hex(DIVERGING_ON_DARK(0.5 + each / 4.8)) for each in np.linspace(0, 1, 9)]
    assert min(contrast(to_hex(word), each) for each in cells) > 4.5


def test_a_second_series_of_a_scheme_is_told_from_the_first_on_dark():
    for name in LOOKS:
        first, second = (on_dark(look["color"]) for look in looks_of([f"{name} 1", f"{name} 2"]))
        assert contrast(second, PAPERS["dark"]) > CONTRAST
        assert np.linalg.norm(seen(first, "any") - seen(second, "any")) > APART, name
