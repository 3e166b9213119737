"""One page about position tables, side by side, that stands alone."""

from .write import WrittenReport, make_report, n_steps, write_report

__all__ = ["WrittenReport", "make_report", "n_steps", "write_report"]
