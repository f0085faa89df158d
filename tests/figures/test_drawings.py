"""The pieces of the figures: ticks, labels that keep apart, crosses, arrow heads."""

import re
from itertools import pairwise

import pytest

from posattn.figures.canvas import spread, style_of, tick_label, ticks
from posattn.figures.forest import Forest, ForestRow, draw_forest
from posattn.figures.lines import LineChart, Point, Series, draw_lines

STYLE = style_of(0, is_baseline=False)
WIDTHS = (360.0, 880.0)


def chart(*series):
    return LineChart(list(series), "x", "y")


def svg(canvas):
    return canvas.to_svg("name", "title", "text")


def coordinates(canvas):
    """Return all x and y of lines and text that the canvas draws."""
    text = svg(canvas)
    xs = [float(x) for x in re.findall(r'\bx[12]?="([-\d.]+)"', text)]
    ys = [float(y) for y in re.findall(r'\by[12]?="([-\d.]+)"', text)]
    for points in re.findall(r'points="([^"]+)"', text):
        for pair in points.split():
            x, y = pair.split(",")
            xs.append(float(x))
            ys.append(float(y))
    return xs, ys


def stays_inside(canvas):
    xs, ys = coordinates(canvas)
    inside = min(xs) >= 0 and max(xs) <= canvas.width
    return inside and min(ys) >= 0 and max(ys) <= canvas.height


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(0, 1, [0, 0.2, 0.4, 0.6, 0.8, 1.0]), (-1.3, 0.4, [-1.0, -0.5, 0.0]), (0, 1.2e6, None)],
)
def test_ticks_are_round_and_inside(low, high, expected):
    found = ticks(low, high)
    assert all(low - 1e-9 <= value <= high + 1e-9 for value in found)
    if expected is not None:
        assert found == pytest.approx(expected)


def test_tick_labels_have_the_decimals_of_their_step_and_a_true_minus():
    assert tick_label(-0.25, 0.25) == "\u22120.25"
    assert tick_label(1.0, 0.5) == "1.0"
    assert tick_label(20.0, 10.0) == "20"
    assert tick_label(-1e-17, 0.5) == "0"


def test_labels_keep_their_distance_and_stay_inside():
    placed = spread([100, 101, 102, 300, 299], gap=15, low=0, high=300)
    ordered = sorted(placed)
    assert all(b - a >= 15 - 1e-9 for a, b in pairwise(ordered))
    assert max(placed) <= 300


def test_twenty_arms_look_different_from_one_another():
    styles = {
        (s.colour, s.dash, s.marker) for s in (style_of(i, is_baseline=False) for i in range(20))
    }
    assert len(styles) == 20


@pytest.mark.parametrize("width", WIDTHS)
def test_a_line_chart_stays_inside_its_box(width):
    points = [Point(float(i), 3.0 - i / 4, 0.1) for i in range(6)]
    lines = [
        Series(f"an arm with a name {i}", style_of(i, is_baseline=False), points) for i in range(9)
    ]
    assert stays_inside(draw_lines(chart(*lines), width))


@pytest.mark.parametrize("width", WIDTHS)
def test_an_arm_that_refuses_a_length_gets_a_cross_and_the_word(width):
    refusing = Series("learned", STYLE, [Point(6.0, 2.4), Point(7.0, 2.6)], refused=[8.0, 9.0])
    text = svg(draw_lines(chart(refusing), width))
    assert text.count('class="cross') == 4
    assert "cannot run" in text


@pytest.mark.parametrize("points", [[], [Point(1.0, 2.0)], [Point(1.0, 2.0), Point(2.0, 2.0)]])
def test_charts_without_points_or_without_height_are_drawn(points):
    text = svg(draw_lines(chart(Series("a", STYLE, points)), 880))
    assert "nan" not in text


def test_an_interval_that_leaves_the_plot_ends_in_an_arrow_head():
    def row(name, mean, half):
        ends = (mean - half, mean + half)
        return ForestRow(name, STYLE, mean, *ends, *ends, "words", "indistinguishable")

    forest = Forest([row("a", -1.0, 0.1), row("b", 0.2, 40.0)], "x", "better", "worse")
    for width in WIDTHS:
        canvas = draw_forest(forest, width)
        assert stays_inside(canvas)
        assert svg(canvas).count("<polyline") == 4, "two intervals, both sides"


def test_a_forest_row_without_a_difference_keeps_its_name():
    row = ForestRow("lost", STYLE, None, None, None, None, None, "not compared", "not tested")
    assert "lost" in svg(draw_forest(Forest([row], "x", "better", "worse"), 880))
