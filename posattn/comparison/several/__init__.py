"""Several studies on one page: what is the same, what differs, scores side by side."""

from posattn.comparison.several.collect import compare_studies
from posattn.comparison.several.report import write_comparison

__all__ = ["compare_studies", "write_comparison"]
