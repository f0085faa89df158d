"""Figures as SVG, without a plotting library: light, dark, wide and narrow."""

from posattn.figures.figure import Figure as Figure
from posattn.figures.figure import make_figure as make_figure
from posattn.figures.figure import standalone as standalone
from posattn.figures.page import page_environment as page_environment
