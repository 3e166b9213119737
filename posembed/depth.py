"""The old name of `posembed.layers`."""

import warnings

from .layers import *  # noqa: F403

warnings.warn("posembed.depth is now posembed.layers", DeprecationWarning, stacklevel=2)
