"""``posembed table``: what a position table is, and whether its rows are well."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from . import _options as options
from . import _pictures as pictures
from ._output import print_json
from ._terminal import console, facts, is_plain, progress, show

if TYPE_CHECKING:
    from ..probing import Spectrum
    from ..tables import PositionTable

# Of the spectrum, in JSON.
MOST_COMPONENTS = 20
WIDEST_PICTURE = 72
EXAMPLES = (
    "posembed table gpt2",
    "posembed table openai/whisper-tiny --part decoder",
    "posembed table ./my-checkpoint --name pos.weight --offset 2 --json",
)


def table(
    source: options.Source,
    part: options.Part = None,
    revision: options.Revision = None,
    name: options.Name = None,
    offset: options.Offset = None,
    download: options.Download = False,
    refresh: options.Refresh = False,
    as_json: options.AsJson = False,
) -> None:
    """Show a position table: its shape, where it stands, the health of its rows, its spectrum."""
    with progress(f"reading the table of {source}"):
        from ..errors import PosembedError
        from ..probing import spectrum
        from ..tables import load_table

        found = load_table(
            source, part=part, revision=revision, name=name, offset=offset, download=download, refresh=refresh
        )
        try:
            spread: Spectrum | PosembedError = spectrum(found)
        except PosembedError as error:
            # The table is there all the same, and its row health says why.
            spread = error
    if as_json:
        print_json(_as_json(found, spread))
        return
    show(facts(_as_facts(found, spread)), "")
    _draw(found, console().width, is_plain())


def _as_facts(found: PositionTable, spread: Any) -> dict[str, str]:
    from ..errors import PosembedError
    from ..report import words

    refused = str(spread) if isinstance(spread, PosembedError) else None
    rows = {
        "table": f"{found.name} of {found.source}",
        "shape": f"{words.shape_of(found)}, stored as {found.stored_dtype}",
        "file": found.file,
        "part": found.part,
        "revision": found.revision,
        "offset": f"{found.offset} rows before position 0, left out here",
        "bytes read": words.size(found.bytes_read),
        "norms": words.norms(found),
        "rows": words.health(found),
        "spectrum": refused or words.spectrum_words(spread),
        "helix": None if refused else words.helix_words(spread),
    }
    return {name: value for name, value in rows.items() if value is not None}


def _as_json(found: PositionTable, spread: Any) -> dict[str, Any]:
    return {
        "source": found.source,
        "name": found.name,
        "file": found.file,
        "part": found.part,
        "revision": found.revision,
        "shape": [found.n_positions, found.d_model],
        "stored_dtype": found.stored_dtype,
        "offset": found.offset,
        "n_class_tokens": found.n_class_tokens,
        "grid": found.grid,
        "bytes_read": found.bytes_read,
        "untrained_rows": found.untrained_rows,
        "non_finite_rows": found.non_finite_rows,
        "norms": _norms_json(found),
        "spectrum": _spectrum_json(spread),
    }


def _norms_json(found: PositionTable) -> dict[str, float] | None:
    norms = found.norms[found.norms.isfinite()]
    if not len(norms):
        return None
    return {"median": norms.quantile(0.5).item(), "min": norms.min().item(), "max": norms.max().item()}


def _spectrum_json(spread: Any) -> dict[str, Any] | None:
    from ..errors import PosembedError

    if isinstance(spread, PosembedError):
        return None
    helix = spread.helix
    turning = {} if helix is None else {"components": [number + 1 for number in helix.components]}
    return {
        "components_for_90_percent": spread.n_components_for(0.9),
        "explained_variance_ratio": spread.explained_variance_ratio[:MOST_COMPONENTS],
        "effective_rank": spread.effective_rank,
        "participation_ratio": spread.participation_ratio,
        "helix": None if helix is None else turning | {"period": helix.period, "share": helix.share},
    }


def _draw(found: PositionTable, width: int, plain: bool) -> None:
    # A row with infinity in it has no norm to draw, nor has one with NaN.
    norms = [norm if math.isfinite(norm) else math.nan for norm in found.norms.tolist()]
    nearest = found.nearest.tolist()
    width = min(width, WIDEST_PICTURE, found.n_positions)
    ends = pictures.under("0", str(found.n_positions - 1), width)
    highest = max((norm for norm in norms if not math.isnan(norm)), default=1.0)
    for title, line in (
        ("norm of each row, from 0", pictures.strip(norms, width, low=0, high=highest, plain=plain)),
        (
            "cosine of each row with its nearest other row, from 0 to 1",
            pictures.strip(nearest, width, low=0, high=1, choose=min, plain=plain),
        ),
    ):
        show(title, style="dim")
        show(line, ends, wrap=False)
