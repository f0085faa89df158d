"""Recomputing a report from the files of its runs, and comparing it with what lies in the folder."""

from posattn.comparison.recomputation.folder import Recomputed, recompute
from posattn.comparison.recomputation.suite import recompute_suite

__all__ = ["Recomputed", "recompute", "recompute_suite"]
