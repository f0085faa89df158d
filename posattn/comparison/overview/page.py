"""`write_overview`: one page over several studies, in HTML and Markdown, with its figures."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path

from posattn.comparison.report.files import write_figures
from posattn.comparison.results_schema import Statement
from posattn.errors import PosattnError
from posattn.figures import Figure, page_environment
from posattn.figures.blocks import Section
from posattn.training.durable import write_bytes

TEMPLATES = ("overview.html.j2", "overview.md.j2")


@dataclass(frozen=True)
class Banner:
    """A warning above the answer; `broken` is the graver kind."""

    title: str
    text: str = ""
    items: list[str] = field(default_factory=list)
    broken: bool = False


@dataclass(frozen=True)
class Overview:
    """All that stands on the page; `links` are targets by label, `footer` says where numbers are."""

    kind: str
    title: str
    texts: list[str]
    banners: list[Banner]
    answer: list[Statement]
    facts: dict[str, str]
    links: dict[str, str]
    sections: list[Section]
    footer: str


@dataclass(frozen=True)
class OverviewPaths:
    """Where an overview lies; `results` are its numbers as JSON."""

    html: Path
    markdown: Path
    results: Path
    figures: Path


def write_overview(
    page: Overview, figures: Iterable[Figure], out: Path, results: tuple[str, str]
) -> OverviewPaths:
    """Write report.html, report.md and figures/ into `out`, and `results`: a file's name and text.

    Raises `PosattnError` where that cannot be written.
    """
    paths = OverviewPaths(out / "report.html", out / "report.md", out / results[0], out / "figures")
    environment = page_environment({name: _template(name) for name in TEMPLATES})
    html = environment.get_template("overview.html.j2").render(page=page)
    markdown = environment.get_template("overview.md.j2").render(page=page)
    try:
        paths.figures.mkdir(parents=True, exist_ok=True)
        write_figures(figures, paths.figures)
        write_bytes(paths.results, f"{results[1]}\n".encode())
        write_bytes(paths.markdown, markdown.encode())
        write_bytes(paths.html, html.encode())
    except OSError as error:
        raise PosattnError(f"the report cannot be written to {out}: {error}") from error
    return paths


def _template(name: str) -> str:
    package = files("posattn.comparison.overview")
    return (package / "templates" / name).read_text(encoding="utf-8")
