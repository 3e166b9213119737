"""JSON from a file that somebody else wrote: an object, and nothing that breaks the reader."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from ..errors import CheckpointError


def parse_object(data: bytes, what: str, *, repeats: bool = True) -> dict[str, Any]:
    """Return the JSON object in these bytes; `what` names them in the error.

    Args:
        data: the bytes.
        what: they are.
        repeats: whether a key may stand twice in one object; the last one counts, as in transformers.

    Raises:
        CheckpointError: no JSON, no object at its top, a repeated key, or nested beyond reason.
    """
    try:
        found = json.loads(data.decode("utf-8"), object_pairs_hook=dict if repeats else _without_repeats)
    except RecursionError as error:
        raise CheckpointError(f"{what} is nested too deeply to be read") from error
    except ValueError as error:  # bad UTF-8, bad JSON, a repeated key, a number of thousands of digits
        raise CheckpointError(f"{what} is damaged: {str(error).splitlines()[0]:.200}") from error
    if not isinstance(found, dict):
        raise CheckpointError(f"{what} holds a JSON {type(found).__name__}, not an object")
    return found


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        repeated, _ = Counter(key for key, _ in pairs).most_common(1)[0]
        raise ValueError(f"the key {repeated:.100} stands there twice")
    return found
