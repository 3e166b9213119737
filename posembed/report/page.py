"""The page itself: findings and pictures set in the template."""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import PosembedError
from . import words
from .findings import Findings
from .gather import Refused
from .pictures import KINDS, Kind
from .summary import GROUPS, in_short

if TYPE_CHECKING:
    from jinja2 import Template

HERE = Path(__file__).parent


def render(
    entries: Sequence[Findings | Refused], made: datetime.date, *, tell: Callable[[str], None] = lambda text: None
) -> str:
    """Set the page.

    Args:
        entries: what was found in each table, or why it could not be read, in the order of the page.
        made: the date that the page states.
        tell: called before each of the `KINDS` of pictures is drawn.

    Returns:
        The page. Every text from outside is escaped; it makes no request to any host.

    Example:
        >>> import datetime
        >>> from posembed.errors import CheckpointNotFoundError
        >>> from posembed.report.gather import Refused
        >>> from posembed.report.page import render
        >>> refused = Refused("<b>", CheckpointNotFoundError("there is no <b>"))
        >>> page = render([refused], datetime.date(2026, 1, 2))
        >>> "&lt;b&gt;" in page, "<b>" in page, "2026-01-02" in page
        (True, False, True)
    """
    from markupsafe import Markup

    found = [entry for entry in entries if isinstance(entry, Findings)]
    return _template().render(
        style=Markup((HERE / "page.css").read_text(encoding="utf-8")),
        columns=[_column(entry) for entry in entries],
        groups=_groups(),
        n_found=len(found),
        sections=[_section(kind, found, tell) for kind in KINDS],
        meanings=_meanings(),
        caveats=words.CAVEATS,
        made=made.isoformat(),
        version=version("posembed"),
    )


def _template() -> Template:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    # Escaped whatever the ending of the template's name.
    environment = Environment(
        loader=FileSystemLoader(HERE),
        autoescape=True,
        finalize=_together,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html.jinja")


def _together(value: Any) -> Any:
    """Keep a number and its percent sign in one line."""
    return value.replace(" %", "\N{NO-BREAK SPACE}%") if type(value) is str else value


def _column(entry: Findings | Refused) -> dict[str, Any]:
    if isinstance(entry, Refused):
        return {"label": entry.label, "refused": str(entry.reason), "cells": [], "notes": [], "short": []}
    cells = [line.cell(entry) for lines in GROUPS.values() for line in lines]
    return {"label": entry.label, "refused": None, "cells": cells, "notes": entry.refusals(), "short": in_short(entry)}


def _groups() -> list[dict[str, Any]]:
    """The summary's groups: the titles of their lines, and which line of the whole table each is."""
    number = itertools.count()
    return [{"name": name, "lines": [(next(number), line.title) for line in lines]} for name, lines in GROUPS.items()]


def _section(kind: Kind, found: list[Findings], tell: Callable[[str], None]) -> dict[str, Any]:
    tell(f"drawing: {kind.title[0].lower()}{kind.title[1:]}")
    cells = [_cell(kind, each, f"{kind.key}-{number}") for number, each in enumerate(found, start=1)]
    return {"key": kind.key, "short": kind.short, "title": kind.title, "guide": kind.guide, "cells": cells}


def _cell(kind: Kind, found: Findings, key: str) -> dict[str, Any]:
    from markupsafe import Markup

    from .svg import inline_svg

    try:
        picture = kind.draw(found)
        return {"label": found.label, "drawing": Markup(inline_svg(picture.figure, key)), "sentence": picture.sentence}
    except PosembedError as error:
        return {"label": found.label, "drawing": None, "sentence": str(error)}


def _meanings() -> list[tuple[str, str]]:
    return [
        (name.replace("_", " "), meaning) for name, meaning in words.PROPERTY_MEANINGS.items() if name != "locality"
    ]
