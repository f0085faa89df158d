"""The figures of the report as SVG, without a plotting library: light, dark, wide and narrow."""

from posattn.comparison.report.figures.study import Figure, study_figures

__all__ = ["Figure", "study_figures"]
