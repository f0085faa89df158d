"""The figures of an inspection: shares of all layers, and of one layer profiles and heat maps."""

from collections.abc import Sequence
from statistics import fmean

from posattn.decomposition.inspection import SHOWN, Inspection, Layer
from posattn.figures.canvas import style_of
from posattn.figures.figure import Figure, Row, make_figure
from posattn.figures.grid import Grid, Grids, draw_grids
from posattn.figures.heat import HeatMap
from posattn.figures.lines import LineChart, Point, Series, draw_lines
from posattn.figures.token_map import TokenMaps, draw_token_maps


def term_names(inspection: Inspection) -> list[str]:
    """Return the names of all terms, in the order in which they first occur."""
    return list(dict.fromkeys(name for layer in inspection.layers for name in layer.shares))


def slug(name: str) -> str:
    """Return a name that a file can have."""
    return name.replace(" ", "_")


def spelled(token: str) -> str:
    """Return a token as it can be seen: blanks and line ends have signs, those of byte-level BPE too."""
    for blank, sign in (
        ("\u0120", "\u2423"),
        (" ", "\u2423"),
        ("\u010a", "\u21b5"),
        ("\n", "\u21b5"),
    ):
        token = token.replace(blank, sign)
    return token


def shares_figure(inspection: Inspection) -> Figure:
    """Return the share of every term in every layer, the mean of its heads, in percent."""
    names = term_names(inspection)
    values = [[_mean_share(layer, name) for name in names] for layer in inspection.layers]
    layers = [layer.name for layer in inspection.layers]
    grid = Grid("share of the variance of logits, %", layers, names, values)
    rows: list[Row] = [
        (layer.name, head + 1, name, share, size)
        for layer in inspection.layers
        for name, one in layer.shares.items()
        for head, (share, size) in enumerate(zip(one.share, one.size, strict=True))
    ]
    described = [
        f"{layer.name}: "
        + ", ".join(f"{name} {_words(_mean_share(layer, name))}" for name in names)
        for layer in inspection.layers
    ]
    return make_figure(
        "shares",
        "Shares of the terms",
        "Share of each term in the variance of the logits, mean over the heads; a row sums to 100. A "
        "negative share works against the others and has no colour.",
        "; ".join(described) + ".",
        lambda width: draw_grids(Grids([grid], "term", 100.0), width),
        ("layer", "head", "term", "share", "size"),
        rows,
    )


def profile_figure(layer: Layer) -> Figure:
    """Return the mean of every term by distance, the mean of the heads."""
    series = []
    for index, (name, profile) in enumerate(layer.profiles.items()):
        style = style_of(index, is_baseline=name == "logits")
        columns = zip(profile.distances, zip(*profile.means, strict=True), strict=True)
        points = [
            Point(distance, fmean(value for value in column if value is not None))
            for distance, column in columns
            if any(value is not None for value in column)
        ]
        series.append(Series(name, style, points))
    chart = LineChart(
        series, "query \u2212 key: negative is right of the query", "mean centred term, logits"
    )
    rows: list[Row] = [
        (name, head + 1, distance, value)
        for name, profile in layer.profiles.items()
        for head, means in enumerate(profile.means)
        for distance, value in zip(profile.distances, means, strict=True)
    ]
    return make_figure(
        f"{slug(layer.name)}-profile",
        f"{layer.name}: terms by distance",
        "Mean of each term at each distance, over all pairs and heads; logits are their sum. Each query's "
        "mean over its keys is taken off first.",
        "At distance 0: "
        + ", ".join(f"{one.name} {_at_0(one)}" for one in series if one.points)
        + ".",
        lambda width: draw_lines(chart, width),
        ("term", "head", "distance", "mean"),
        rows,
    )


def heat_figure(layer: Layer, head: int, tokens: Sequence[str]) -> Figure:
    """Return every term, and their sum, over the first tokens, of one head (from 0)."""
    names = [*layer.terms.terms, *(["logits"] if len(layer.terms.terms) > 1 else [])]
    maps = [HeatMap(name, layer.heat(name, head)) for name in names]
    shown = [spelled(token) for token in tokens[:SHOWN]]
    content = TokenMaps(maps, shown, "more attention", "less attention")
    rows: list[Row] = [
        (part.name, query, shown[query], key, shown[key], value)
        for part in maps
        for query, line in enumerate(part.rows)
        for key, value in enumerate(line)
    ]
    return make_figure(
        f"{slug(layer.name)}-head_{head + 1}",
        f"{layer.name}, head {head + 1}",
        f"Terms of head {head + 1} over the first {len(shown)} tokens, queries in rows and keys in columns, "
        "less each query's mean over its keys. One scale for all maps; colour grows with the square root.",
        "Largest: " + ", ".join(f"{part.name} {part.largest():.3g}" for part in maps) + ".",
        lambda width: draw_token_maps(content, width),
        ("term", "query", "query_token", "key", "key_token", "value"),
        rows,
    )


def _mean_share(layer: Layer, name: str) -> float | None:
    if name not in layer.shares:
        return None
    found = [share for share in layer.shares[name].share if share is not None]
    return 100 * fmean(found) if found else None


def _words(share: float | None) -> str:
    return "none" if share is None else f"{share:.0f} %"


def _at_0(series: Series) -> str:
    return next((f"{point.y:.3f}" for point in series.points if point.x == 0), "none")
