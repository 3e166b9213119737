"""The command line: ``posembed table``, ``probe``, ``properties``, ``report``, ``train``, ``grid`` and ``doctor``."""

from ._app import main

__all__ = ["main"]
