"""Heat maps over tokens: labelled on both sides, one scale, within the canvas."""

import re

import pytest

from posattn.figures.heat import HeatMap
from posattn.figures.token_map import TokenMaps, draw_token_maps


@pytest.mark.parametrize("width", [880.0, 360.0])
@pytest.mark.parametrize("count", [1, 2, 5])
def test_maps_are_labelled_and_stay_on_the_canvas(width: float, count: int) -> None:
    tokens = ["<s>", "extraordinary", *(["of"] * 22)]
    rows = [[1.0, -0.25, *([None] * 22)]] * 24
    maps = [HeatMap(f"term {number}", rows) for number in range(count)]
    canvas = draw_token_maps(TokenMaps(maps, tokens, "more", "less"), width)
    text = "".join(canvas.parts)
    assert text.count("&lt;s&gt;") == 2 * count
    assert text.count("extraor\u2026") == 2 * count
    assert {"up l8", "down l4", "hid"} <= set(re.findall(r'cell ([a-z0-9 ]+)"', text))
    edges = re.findall(r'points="([^"]+)" class="frame"', text)
    places = [tuple(map(float, point.split(","))) for part in edges for point in part.split()]
    assert max(x for x, _ in places) <= width
    assert max(y for _, y in places) <= canvas.height
