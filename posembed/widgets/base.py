"""The base of every interactive figure: an anywidget whose output also carries a self-contained page form of itself."""

from __future__ import annotations

import copy
import hashlib
import itertools
import json
from collections import defaultdict
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any, ClassVar

import anywidget
import numpy as np
import traitlets
from matplotlib.markers import MarkerStyle
from matplotlib.path import Path as Outline

from ..figures import looks
from ..figures.looks import DASHES, LOOKS

STATIC = Path(__file__).parent / "static"
# The book's, Colab's and JupyterLab's dark pages.
DARK = ('html[data-theme="dark"]', 'html[theme="dark"]', 'body[data-jp-theme-light="false"]')
# How wide a line with dashes is, in pixels.
WIDTH = 2
LETTERS = {Outline.MOVETO: "M", Outline.LINETO: "L", Outline.CURVE3: "Q", Outline.CURVE4: "C", Outline.CLOSEPOLY: "Z"}

# A model with the part of anywidget's interface that the figures use, started when its place comes near or the page is
# printed; until then the place is as high as it will be. `started` marks the element, because JupyterLab may show one
# output twice.
_PAGE = """<div class="posembed-root" data-posembed="{uid}" style="--pe-phone: {phone}px; --pe-wide: {wide}px">
{fallback}</div>
<script type="module">
const state = {state};
const source = {module};
const el = document.querySelector('[data-posembed="{uid}"]:not([data-started])');
el.dataset.started = "yes";
const listeners = {{}};
const model = {{
  get: (name) => state[name],
  set: (name, value) => {{
    state[name] = value;
    (listeners["change:" + name] || []).forEach((listener) => listener());
  }},
  save_changes() {{}},
  on: (event, listener) => (listeners[event] ||= []).push(listener),
}};
const start = async () => {{
  near.disconnect();
  removeEventListener("beforeprint", start);
  const url = URL.createObjectURL(new Blob([source], {{ type: "text/javascript" }}));
  const figure = await import(url);
  URL.revokeObjectURL(url);
  figure.default.render({{ model, el }});
  el.dataset.drawn = "yes";
  // The page may keep what a reader sets.
  el.dispatchEvent(new CustomEvent("posembed:drawn", {{ bubbles: true, detail: {{ model, state }} }}));
}};
const look = (seen) => seen.some((each) => each.isIntersecting) && start();
const near = new IntersectionObserver(look, {{ rootMargin: "600px" }});
near.observe(el);
addEventListener("beforeprint", start);
</script>
<style>{style}</style>"""


class InteractiveFigure(anywidget.AnyWidget):
    """A figure from one ES module, wherever it is shown.

    A subclass names its module in ``module``, hands what the module reads to ``super().__init__`` by name, and draws
    ``fallback_html`` for readers without JavaScript. With a kernel it is an ordinary widget with these names as traits,
    without one the ``text/html`` form in its output runs in the page: the same module, with its state as JSON.

    Raises:
        FigureInputError: more numbers than a page has room for.

    Example:
        >>> from posembed.widgets import LookupFigure
        >>> sorted(LookupFigure().state())
        ['batch', 'learning_rate', 'padding', 'selected', 'summed', 'table', 'targets', 'words']
    """

    module: ClassVar[str]
    # Other modules that stand in front of it.
    parts: ClassVar[tuple[str, ...]] = ()
    # How many pixels high it is on a phone of 390 and on a wide page, about.
    height: tuple[int, int]
    # ipywidgets 7, which Colab has, would display a widget by itself, without the page form.
    _ipython_display_ = None
    _numbers: ClassVar[defaultdict[str, Iterator[int]]] = defaultdict(itertools.count)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        # Only where a figure is defined: each instance makes a subclass of its own for its traits.
        if "module" in cls.__dict__:
            cls._esm, cls._css = cls.source(), cls.stylesheet()
        super().__init_subclass__(**kwargs)

    def __init__(self, **state: Any) -> None:
        self.add_traits(
            **{name: traitlets.Any(copy.deepcopy(value)).tag(sync=True, figure=True) for name, value in state.items()}
        )
        super().__init__()

    @classmethod
    def source(cls) -> str:
        """The ES module: shared kit and looks in front of the figure's own part, so that no import needs an address."""
        kit, *own = ((STATIC / name).read_text(encoding="utf-8") for name in ("kit.js", *cls.parts, cls.module))
        return "\n".join((kit, _looks_as_constants(), *own))

    @classmethod
    def stylesheet(cls) -> str:
        """The style sheet of all figures with the looks of schemes; behind it the figure's own, where there is one."""
        shared, own = STATIC / "figure.css", (STATIC / cls.module).with_suffix(".css")
        parts = [shared.read_text(encoding="utf-8"), _looks_as_rules()]
        if own.exists():
            parts.append(own.read_text(encoding="utf-8"))
        return "\n".join(parts)

    def state(self) -> dict[str, Any]:
        """What the module reads, by name."""
        return {name: getattr(self, name) for name in self.trait_names(figure=True)}

    def fallback_html(self) -> str:
        """What a reader without JavaScript sees (a notebook preview, print before the page has run)."""
        raise NotImplementedError(f"{type(self).__name__} must draw a form of itself for readers without JavaScript")

    def page_html(self) -> str:
        """The self-contained form: fallback, state, module and style."""
        state = _script_safe(self.state())
        # The same notebook run in the same order gives the same identifiers, so stored outputs compare.
        number = next(self._numbers[type(self).__name__])
        uid = hashlib.sha256(f"{type(self).__name__}{number}{state}".encode()).hexdigest()[:8]
        return _PAGE.format(
            uid=f"pe-{uid}",
            phone=self.height[0],
            wide=self.height[1],
            fallback=self.fallback_html(),
            state=state,
            module=_script_safe(self.source()),
            style=self.stylesheet(),
        )

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]] | None:
        bundle = super()._repr_mimebundle_(**kwargs)
        data, metadata = bundle if isinstance(bundle, tuple) else (bundle or {}, {})
        name = type(self).__name__
        return {**data, "text/html": self.page_html(), "text/plain": f"<{name}: interactive figure>"}, metadata


def html_table(caption: str, header: list[str], rows: list[list[str]]) -> str:
    """Make a plain HTML table, the fallback of a figure, which says that it is one. Texts are escaped."""
    caption = f"Interactive figure (needs JavaScript): {caption}"
    head = "".join(f'<th scope="col">{escape(text)}</th>' for text in header)
    body = "".join("<tr>" + "".join(f"<td>{escape(text)}</td>" for text in row) + "</tr>" for row in rows)
    return f"<table><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def rounded(numbers: Any, decimals: int) -> Any:
    """Round a number, or rows of them: each machine writes the same text then. None for NaN and where there is none."""
    if numbers is None or np.ndim(numbers):
        return None if numbers is None else [rounded(each, decimals) for each in numbers]
    return None if np.isnan(numbers) else round(numbers, decimals)


def _script_safe(value: Any) -> str:
    """JSON that no text can break out of a script element."""
    return json.dumps(value, sort_keys=True).replace("<", "\\u003c")


def _looks_as_rules() -> str:
    """Define each scheme's colour, and those of signed numbers, on light paper and on dark."""
    light = {"negative": looks.BELOW, "zero": looks.ZERO, "positive": looks.ABOVE}
    dark = {"negative": looks.BELOW_ON_DARK, "zero": looks.ZERO_ON_DARK, "positive": looks.ABOVE_ON_DARK}
    light |= {name: look.light for name, look in LOOKS.items()}
    dark |= {name: look.dark for name, look in LOOKS.items()}
    on_dark = ", ".join(f"{page} .pe-figure" for page in DARK)
    classes = "\n".join(f".pe-scheme-{name} {{ --pe-series: var(--pe-{name}); }}" for name in LOOKS)
    return (
        f".pe-figure {{ {_variables(light)} }}\n@media not print {{ {on_dark} {{ {_variables(dark)} }} }}\n{classes}\n"
    )


def _looks_as_constants() -> str:
    """Define the dashes and marks of the schemes, and the colours of pictures that are drawn once for any page."""
    schemes = {
        name: {
            "dash": " ".join(f"{WIDTH * each:g}" for each in DASHES[look.dash]) or "none",
            "mark": _mark(look.marker),
        }
        for name, look in LOOKS.items()
    }
    colours = [[int(each[k : k + 2], 16) for k in (1, 3, 5)] for each in (looks.BELOW_ON_BOTH, looks.ABOVE_ON_BOTH)]
    return f"const LOOKS = {json.dumps(schemes)};\nconst [BELOW, ABOVE] = {json.dumps(colours)};\n"


def _mark(marker: str) -> str:
    """A marker of matplotlib as the outline of a path, of the size of a circle of radius 1."""
    style = MarkerStyle(marker)
    outline = style.get_path().transformed(style.get_transform())
    # Upside down: pages count y from above. Markers are 1 wide.
    steps = [((2 * np.reshape(points, (-1, 2)) * [1, -1]).round(3), code) for points, code in outline.iter_segments()]
    return "".join(
        # Adding zero turns minus zero into zero.
        LETTERS[code] + ("" if code == Outline.CLOSEPOLY else " ".join(f"{each + 0.0:g}" for each in points.flat))
        for points, code in steps
    )


def _variables(colours: dict[str, str]) -> str:
    return " ".join(f"--pe-{name}: {colour};" for name, colour in colours.items())
