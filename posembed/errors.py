"""Named errors, one a subject. Each message is one line that says what was given and what to do."""

from collections.abc import Sequence

# The longest that a message shows of what was given.
SHOWN = 80
# Of a list it names so many.
LISTED = 8


class PosembedError(Exception):
    """The base of every error that posembed raises by itself.

    Example:
        >>> import posembed
        >>> try:
        ...     posembed.scheme("alibbi")
        ... except posembed.PosembedError as error:
        ...     print(type(error).__name__)
        EncodingInputError
    """


class EquivarianceInputError(PosembedError, ValueError):
    """A function or an input that cannot be tested: one token, all tokens alike, NaN, no tensor in the output."""


class NonDeterministicError(EquivarianceInputError):
    """The same input gave two different outputs: dropout is on, or the function keeps a state."""


class LookupInputError(PosembedError, ValueError):
    """A table or ids that no lookup can use, or an id that names no row."""


class EncodingInputError(PosembedError, ValueError):
    """A name that no scheme has; sizes, options or positions that an encoding is not defined for."""


class PositionOutOfRangeError(EncodingInputError, IndexError):
    """A position that a scheme has no value for: past a learned table, or beyond the range of the numbers."""


class ModelInputError(PosembedError, ValueError):
    """Sizes or options that no model can have; ids, masks or a cache that it cannot use."""


class PositionTableError(PosembedError, ValueError):
    """A model without a position table, with several, or a replacement that does not fit."""


class CheckpointError(PosembedError, ValueError):
    """A checkpoint whose files are damaged, contradict themselves, or are of a kind that is not read."""


class CheckpointNotFoundError(PosembedError, OSError):
    """A checkpoint that is in none of the places searched, or a hub that cannot be reached, refuses or breaks off."""


class ProbeInputError(PosembedError, ValueError):
    """A table, rows or options that no probe can work with."""


class PropertiesInputError(PosembedError, ValueError):
    """A matrix, a table or options that the three properties are not defined for."""


class AuditError(PosembedError, ValueError):
    """A model that cannot be audited: it draws, gives no numbers for each token, or is too large to copy."""


class CorpusError(PosembedError, ValueError):
    """A text that cannot be read or is too short for what is wanted of it."""


class TaskError(PosembedError, ValueError):
    """A task that is not there, or whose files are missing, malformed or hold nothing; a difficulty it cannot have."""


class RunError(PosembedError, ValueError):
    """Settings that cannot be meant, a training that diverged, or a stored result that is missing or damaged."""


class FigureInputError(PosembedError, ValueError):
    """What a figure cannot draw."""


class ReportError(PosembedError, ValueError):
    """A report without any table to show, or a file that it cannot be written to."""


def shown(given: object) -> str:
    """What was given, in a message: as Python writes it where that is short and one line, else by its kind.

    Example:
        >>> from posembed.errors import shown
        >>> shown("rope"), shown(list(range(100)))
        ("'rope'", 'a list')
    """
    if (shape := getattr(given, "shape", None)) and hasattr(given, "dtype"):
        return f"a {type(given).__name__} of {given.dtype} and shape {tuple(shape)}"
    text = repr(given)
    if len(text) <= SHOWN and "\n" not in text:
        return text
    return f"{given[:SHOWN]!r}..." if isinstance(given, str) else f"a {type(given).__name__}"


def listed(values: Sequence[object]) -> str:
    """Values in one line, the first few where there are many.

    Example:
        >>> from posembed.errors import listed
        >>> listed(range(10))
        '0, 1, 2, 3, 4, 5, 6, 7 and 2 more'
    """
    more = f" and {len(values) - LISTED} more" if len(values) > LISTED else ""
    return ", ".join(map(str, values[:LISTED])) + more
