"""Named errors. Each message is one line that says what was given and what to do."""


class PosembedError(Exception):
    """The base of every error that posembed raises by itself."""


class EquivarianceInputError(PosembedError, ValueError):
    """The input cannot tell whether a function is equivariant: empty, one token, all tokens alike, a wrong axis."""


class NonFiniteError(PosembedError, ValueError):
    """NaN or infinity, with which no comparison means anything."""


class NonDeterministicError(PosembedError, ValueError):
    """The same input gave two different outputs: dropout is on, or the function keeps a state."""


class LengthChangedError(PosembedError, ValueError):
    """The output has a sequence axis of another length than the input."""


class OutputError(PosembedError, TypeError):
    """What the function returned holds no tensor, or several, and nothing says which one is meant."""


class EncodingInputError(PosembedError, ValueError):
    """Sizes, options or positions that an encoding is not defined for."""


class UnknownSchemeError(PosembedError, ValueError):
    """A name that no position scheme has."""


class PositionOutOfRangeError(PosembedError, IndexError):
    """A position that a scheme has no value for: past a learned table, or beyond the range of the numbers."""


class AttentionInputError(PosembedError, ValueError):
    """Sizes, masks or a cache that attention cannot use."""


class ModelConfigError(PosembedError, ValueError):
    """Sizes or options that no model can have, or ids that are not its tokens."""


class CorpusError(PosembedError, ValueError):
    """A text that cannot be read or is too short for what is wanted of it."""


class RunConfigError(PosembedError, ValueError):
    """Settings of a training run that cannot be meant."""


class TrainingDivergedError(PosembedError, ArithmeticError):
    """The loss became NaN or infinite."""


class ResultError(PosembedError, ValueError):
    """A stored result that is missing, damaged, or of a newer version of this package."""


class LookupInputError(PosembedError, ValueError):
    """A table or ids that no lookup can use."""


class IdOutOfRangeError(PosembedError, IndexError):
    """An id that names no row of the table."""


class PositionTableError(PosembedError, ValueError):
    """A model without a position table, with several, or a replacement that does not fit."""


class CheckpointError(PosembedError, ValueError):
    """A checkpoint whose files are damaged, contradict themselves, or are of a kind that is not read."""


class CheckpointNotFoundError(PosembedError, OSError):
    """A checkpoint that is in none of the places searched."""


class HubError(PosembedError, OSError):
    """The hub cannot be reached, refuses, or breaks off."""


class ProbeInputError(PosembedError, ValueError):
    """A table, rows or options that no probe can work with."""


class PropertiesInputError(PosembedError, ValueError):
    """A matrix, a table or options that the three properties are not defined for."""


class ReportError(PosembedError, ValueError):
    """A report without any table to show, or a file that it cannot be written to."""


class FigureInputError(PosembedError, ValueError):
    """What a figure cannot draw."""


class EncoderNotFoundError(PosembedError, OSError):
    """The encoder is neither installed nor to be had from the hub."""
