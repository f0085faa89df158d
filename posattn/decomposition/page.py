"""An inspection as a page without outside parts, with its figures and their numbers beside it."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import posattn
from posattn.decomposition.figures import (
    heat_figure,
    profile_figure,
    shares_figure,
    slug,
    spelled,
    term_names,
)
from posattn.decomposition.inspection import Inspection, Layer
from posattn.errors import PosattnError
from posattn.figures import Figure, page_environment, standalone
from posattn.figures.blocks import Block, Bullets, Picture, Section, Table, Text, numbers, words
from posattn.training.durable import write_bytes

TEMPLATE = "inspect.html.j2"
DEFINITIONS = [
    "A share is the covariance of a term with the logits over the variance of the logits, over all pairs of "
    "a query and a key that it sees. Shares of a head sum to 100 %; one below 0 works against the others.",
    "Size is the root mean square of a term, in logits.",
    "Before both, each query's mean over its keys is taken off every term: softmax ignores it.",
    "Positions that are added to the embeddings have no term: they are in the content of every layer.",
]


@dataclass(frozen=True)
class PageFacts:
    """What the page says of its making; `heads` (from 0) are those with heat maps."""

    title: str
    origin: str
    command: str
    heads: Sequence[int]


def write_page(inspection: Inspection, facts: PageFacts, out: Path) -> Path:
    """Write inspect.html and figures/ into the folder and return the page's path.

    Raises `PosattnError` where nothing can be written.
    """
    sections, figures = _sections(inspection, facts.heads)
    template = files("posattn.decomposition") / "templates" / TEMPLATE
    environment = page_environment({TEMPLATE: template.read_text(encoding="utf-8")})
    page = environment.get_template(TEMPLATE).render(
        title=facts.title,
        origin=facts.origin,
        command=facts.command,
        facts=[
            ("tokens", len(inspection.tokens)),
            ("layers", len(inspection.layers)),
            ("heads", max(layer.heads for layer in inspection.layers)),
            ("terms", ", ".join(term_names(inspection))),
        ],
        text=" ".join(map(spelled, inspection.tokens)),
        sections=sections,
        version=posattn.__version__,
    )
    try:
        (out / "figures").mkdir(parents=True, exist_ok=True)
        for figure in figures:
            write_bytes(out / "figures" / f"{figure.name}.svg", standalone(figure.wide).encode())
            write_bytes(out / "figures" / f"{figure.name}.csv", _csv(figure).encode())
        write_bytes(out / "inspect.html", page.encode())
    except OSError as error:
        raise PosattnError(f"the page cannot be written to {out}: {error}") from error
    return out / "inspect.html"


def _sections(inspection: Inspection, heads: Sequence[int]) -> tuple[list[Section], list[Figure]]:
    overview = shares_figure(inspection)
    blocks: list[Block] = [Picture(overview), Text("How to read it:"), Bullets(DEFINITIONS)]
    sections, figures = [Section("shares", "Shares", blocks)], [overview]
    for layer in inspection.layers:
        blocks = [shares_table(layer)]
        if layer.terms.adds_values:
            blocks.append(Text("This layer also adds position to the values, which no term shows."))
        figures.append(profile_figure(layer))
        blocks.append(Picture(figures[-1]))
        for head in (head for head in heads if head < layer.heads):
            figures.append(heat_figure(layer, head, inspection.tokens))
            blocks += [Text(f"Head {head + 1}"), Picture(figures[-1])]
        sections.append(Section(slug(layer.name), layer.name, blocks))
    return sections, figures


def shares_table(layer: Layer) -> Table:
    """Return share and size of every term in every head."""
    names = list(layer.shares)
    titles = [title for name in names for title in (f"{name}, %", f"{name}, size")]
    rows = [
        [f"head {head + 1}", *(cell for name in names for cell in share_cells(layer, name, head))]
        for head in range(layer.heads)
    ]
    return Table(f"Terms of {layer.name}", [*words("head"), *numbers(*titles)], rows)


def share_cells(layer: Layer, name: str, head: int) -> tuple[str, str]:
    """Return the share in percent and the size of a term in a head (from 0), as text."""
    share, size = layer.shares[name].share[head], layer.shares[name].size[head]
    if share is None:
        return "\u2013", f"{size:.3g}"
    shown = f"{round(100 * share, 1) + 0.0:.1f}"  # + 0.0: no minus sign before zero
    return shown.replace("-", "\u2212"), f"{size:.3g}"


def _csv(figure: Figure) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(figure.columns)
    writer.writerows(["" if value is None else value for value in row] for row in figure.rows)
    return buffer.getvalue()
