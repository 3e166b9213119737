"""The old name of `posembed.training`."""

import warnings

from .training import *  # noqa: F403

warnings.warn("posembed.experiments is now posembed.training", DeprecationWarning, stacklevel=2)
