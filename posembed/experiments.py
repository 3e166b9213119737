"""The old name of `posembed.training` and `posembed.stored`."""

import warnings

from .stored import *  # noqa: F403
from .training import *  # noqa: F403

warnings.warn(
    "posembed.experiments is now posembed.training, its results posembed.stored", DeprecationWarning, stacklevel=2
)
