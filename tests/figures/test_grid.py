"""Grids of numbers: every number is written, colour grows with it, and nothing leaves the canvas."""

import re

import pytest

from posattn.figures.grid import Grid, Grids, draw_grids

TWO = Grid("rope", ["layer 1", "layer 2"], ["1", "2"], [[0.0, 10.0], [5.0, None]])


@pytest.mark.parametrize("width", [880.0, 360.0])
def test_every_number_is_written_and_larger_ones_have_more_colour(width: float) -> None:
    canvas = draw_grids(Grids([TWO], "head", 10.0), width)
    text = "".join(canvas.parts)
    for number in ("0.0", "10.0", "5.0", "\u2013"):
        assert f">{number}<" in text
    assert re.findall(r"cell down (l\d)", text) == ["l5", "l2"]


@pytest.mark.parametrize("width", [880.0, 360.0])
@pytest.mark.parametrize("count", [1, 3, 5])
def test_grids_stay_on_the_canvas(width: float, count: int) -> None:
    wide = Grid("bert", ["decoder pass 1"], [str(n) for n in range(12)], [[1.0] * 12])
    canvas = draw_grids(Grids([wide] * count, "head", 1.0), width)
    places = [
        (float(x), float(y))
        for x, y in re.findall(r'x="([\d.]+)" y="([\d.]+)"', "".join(canvas.parts))
    ]
    assert max(x for x, _ in places) <= width
    assert max(y for _, y in places) <= canvas.height
