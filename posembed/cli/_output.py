"""JSON for programs."""

from __future__ import annotations

import json
from typing import Any

import typer

from ..plain import plain


def print_json(value: Any) -> None:
    """Print a value as JSON: NaN and infinity, which JSON has not, become null, and every letter is ASCII.

    Args:
        value: numbers, texts, lists, mappings; arrays and tensors become lists.

    Example:
        >>> from posembed.cli._output import print_json
        >>> print_json({"mae": 0.5, "locality": float("nan")})
        {
          "mae": 0.5,
          "locality": null
        }
    """
    typer.echo(json.dumps(plain(value), indent=2, allow_nan=False))
