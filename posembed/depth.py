"""The old name of `posembed.layers`."""

import warnings

from .layers import *  # noqa: F403
from .layers import __getattr__  # noqa: F401

warnings.warn("posembed.depth is now posembed.layers", DeprecationWarning, stacklevel=2)
