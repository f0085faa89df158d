"""The two figures of a mechanism: its pattern over queries and keys, and the effect of distance."""

from posattn.figures.canvas import style_of
from posattn.figures.figure import Figure, Row, make_figure
from posattn.figures.heat import HeatMap, HeatMaps, draw_heat
from posattn.figures.lines import LineChart, Point, Series, draw_lines
from posattn.gallery.portrait import SIDE, Portrait

SHOWN = 24
REACH = 32


def pattern_figure(name: str, portrait: Portrait) -> Figure:
    """Return heat maps of the logits of the first tokens, head by head."""
    maps = []
    heads = portrait.heads()
    for head in heads:
        added = portrait.added[head, :SHOWN, :SHOWN].tolist()
        visible = portrait.visible[head, :SHOWN, :SHOWN].tolist()
        rows = [
            [value if seen else None for value, seen in zip(*row, strict=True)]
            for row in zip(added, visible, strict=True)
        ]
        maps.append(HeatMap(_head(head, heads), rows))
    heat = HeatMaps(maps, "key", "query", "more attention", "less attention")
    shown = min(SHOWN, portrait.added.shape[1])
    rows_: list[Row] = [
        (part.name, query, key, value)
        for part in maps
        for query, row in enumerate(part.rows)
        for key, value in enumerate(row)
    ]
    ranges = ", ".join(f"{part.name} up to {part.largest():.3g}" for part in maps)
    return make_figure(
        f"{name}-pattern",
        f"{name}: pattern over queries and keys",
        f"Logits of the first {shown} tokens when all hold the same content, against the head's mean at "
        "distance 0. One scale for all heads; colour grows with the square root.",
        f"Largest change of a logit: {ranges}.",
        lambda width: draw_heat(heat, width),
        ("head", "query", "key", "logit"),
        rows_,
    )


def distance_figure(name: str, portrait: Portrait) -> Figure:
    """Return the mean logit over all pairs at each distance, head by head."""
    heads = portrait.heads()
    series = [_series(portrait, head, heads) for head in heads]
    chart = LineChart(
        series,
        "query \u2212 key: negative is right of the query",
        "logit, against that at distance 0",
    )
    rows: list[Row] = [
        (one.name, point.x, point.y, point.sd) for one in series for point in one.points
    ]
    caption = "Mean over all pairs of tokens at each distance"
    if any(point.sd for one in series for point in one.points):
        caption += "; the band is ±1 standard deviation over the pairs, which differ by place"
    return make_figure(
        f"{name}-distance",
        f"{name}: effect of distance",
        f"{caption}.",
        f"The logit by distance, from {-REACH} to {REACH}.",
        lambda width: draw_lines(chart, width),
        ("head", "distance", "mean", "sd"),
        rows,
    )


def offset_figure(name: str, portrait: Portrait) -> Figure:
    """Return heat maps of the logits of the cell in the middle of a grid, head by head."""
    heads, half = portrait.heads(), SIDE // 2
    maps = [
        HeatMap(
            _head(head, heads), portrait.added[head, SIDE * half + half].view(SIDE, SIDE).tolist()
        )
        for head in heads
    ]
    heat = HeatMaps(maps, "key's column", "key's row", "more attention", "less attention")
    rows: list[Row] = [
        (part.name, half - row, half - column, value)
        for part in maps
        for row, line in enumerate(part.rows)
        for column, value in enumerate(line)
    ]
    return make_figure(
        f"{name}-grid",
        f"{name}: pattern over the offsets of a grid",
        f"Logits of the query in the middle of {SIDE} x {SIDE} cells, with `relation: grid`, against the "
        "head's mean at offset 0. One scale for all heads; colour grows with the square root.",
        "Largest change of a logit: "
        + ", ".join(f"{part.name} up to {part.largest():.3g}" for part in maps)
        + ".",
        lambda width: draw_heat(heat, width),
        ("head", "row offset", "column offset", "logit"),
        rows,
    )


def _series(portrait: Portrait, head: int, heads: list[int]) -> Series:
    length = portrait.added.shape[1]
    points = []
    for distance in range(-min(REACH, length - 1), min(REACH, length - 1) + 1):
        seen = portrait.visible[head].diagonal(-distance)
        values = portrait.added[head].diagonal(-distance)[seen]
        if len(values):
            spread = float(values.std(correction=0))
            points.append(Point(distance, float(values.mean()), spread if spread > 1e-6 else None))
    return Series(_head(head, heads), style_of(head, is_baseline=False), points)


def _head(head: int, heads: list[int]) -> str:
    return "every head" if len(heads) == 1 else f"head {head + 1}"
