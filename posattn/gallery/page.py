"""The gallery as one HTML page, and as Markdown with its drawings beside it for the documentation."""

from importlib.resources import files
from pathlib import Path

import posattn
from posattn.errors import PosattnError
from posattn.figures import page_environment, standalone
from posattn.figures.blocks import Block, Picture, Section, Table, numbers, words
from posattn.gallery.cost import BASELINE, Cost, Ratio
from posattn.gallery.exhibit import Exhibit, Gallery
from posattn.training.durable import write_bytes

TEMPLATES = ("gallery.html.j2", "gallery.md.j2", "gallery.css")


def write_html(gallery: Gallery, out: Path) -> Path:
    """Write `gallery.html`, which needs no other file, into the folder and return its path."""
    sections = [_section(exhibit) for exhibit in gallery.exhibits]
    page = _render("gallery.html.j2", gallery=gallery, sections=sections)
    return _write(out / "gallery.html", page)


def write_markdown(gallery: Gallery, docs: Path) -> Path:
    """Write `gallery.md` and `gallery/*.svg` into the folder and return the page's path."""
    for exhibit in gallery.exhibits:
        for figure in exhibit.figures:
            _write(docs / "gallery" / f"{figure.name}.svg", standalone(figure.wide))
    return _write(docs / "gallery.md", _render("gallery.md.j2", gallery=gallery))


def overview(gallery: Gallery) -> Table:
    """Return one row per mechanism: what it knows, what it costs."""
    columns = [
        *words("mechanism", "direction", "absolute position", "any length"),
        *numbers("own parameters", "training time", "inference time", "memory kept"),
    ]
    base = next(e.cost for e in gallery.exhibits if e.name == BASELINE)
    return Table(
        "All mechanisms",
        columns,
        [_row(exhibit, base) for exhibit in gallery.exhibits],
        note=conditions(gallery),
    )


def conditions(gallery: Gallery) -> str:
    """Return how the costs were measured, in a sentence or two."""
    shown = "; ".join(f"{key} {value}" for key, value in gallery.conditions.items())
    return (
        f"Time: multiples of {BASELINE}'s in the same round, median and quartiles. Memory kept: what one "
        f"forward holds for its backward pass, as a multiple of {BASELINE}'s. Measured with {shown}."
    )


def _row(exhibit: Exhibit, base: Cost) -> list[str]:
    knows, cost = exhibit.knows, exhibit.cost
    short = [
        knows.get(key, "unknown").partition(" (")[0]
        for key in ("direction", "absolute position", "runs beyond the training length")
    ]
    return [
        exhibit.name,
        *short,
        "not measured" if cost.parameters is None else f"{cost.parameters:,}",
        ratio_text(cost.training),
        ratio_text(cost.inference),
        kept_text(cost, base),
    ]


def ratio_text(ratio: Ratio | None) -> str:
    """Return a ratio with its quartiles."""
    if ratio is None:
        return "not measured"
    return f"{ratio.median:.2f} [{ratio.low:.2f}, {ratio.high:.2f}]"


def kept_text(cost: Cost, base: Cost) -> str:
    """Return the memory kept for the backward pass as a multiple of the baseline's."""
    if cost.kept_bytes is None or not base.kept_bytes:
        return "not measured"
    return f"{cost.kept_bytes / base.kept_bytes:.2f}"


def _section(exhibit: Exhibit) -> Section:
    blocks: list[Block] = [Picture(figure) for figure in exhibit.figures]
    return Section(exhibit.name, exhibit.name, blocks)


def _render(template: str, **values: object) -> str:
    folder = files("posattn.gallery") / "templates"
    texts = {name: (folder / name).read_text(encoding="utf-8") for name in TEMPLATES}
    environment = page_environment(texts)
    gallery = values["gallery"]
    assert isinstance(gallery, Gallery)
    return environment.get_template(template).render(
        **values,
        overview=overview(gallery),
        conditions=conditions(gallery),
        base=next(e.cost for e in gallery.exhibits if e.name == BASELINE),
        ratio=ratio_text,
        kept=kept_text,
        version=posattn.__version__,
    )


def _write(path: Path, text: str) -> Path:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(path, text.encode())
    except OSError as error:
        raise PosattnError(f"the gallery cannot be written to {path}: {error}") from error
    return path
