"""Does a model handle its positions? Identities that padding, packing, caches and shifts must keep, on any model."""

from .report import AuditReport, CheckResult
from .run import audit

__all__ = ["AuditReport", "CheckResult", "audit"]
