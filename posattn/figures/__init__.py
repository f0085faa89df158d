"""Figures as SVG, without a plotting library: light, dark, wide and narrow."""

from posattn.figures.figure import Figure as Figure
from posattn.figures.figure import make_figure as make_figure
from posattn.figures.figure import standalone as standalone
from posattn.figures.figure import style_sheet as style_sheet
