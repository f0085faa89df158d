"""`write_report(out)`: results.json, report.html, report.md and the figures of a study folder."""

import csv
import io
import re
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from jinja2 import DictLoader, Environment, StrictUndefined
from markupsafe import Markup

from posattn.comparison.report.facts import fact_sections
from posattn.comparison.report.quality import quality_sections
from posattn.comparison.report.study_figures import study_figures
from posattn.comparison.results import collect
from posattn.errors import PosattnError
from posattn.figures import Figure, standalone, style_sheet
from posattn.training.durable import write_bytes

NO_BREAK = "\u00a0"
TEMPLATES = ("report.html.j2", "blocks.html.j2", "report.md.j2")
STYLES = ("style.css", "figure.css")


@dataclass(frozen=True)
class ReportPaths:
    """Where a report lies."""

    html: Path
    markdown: Path
    results: Path
    figures: Path


def write_report(out: Path) -> ReportPaths:
    """Write the report of the study folder `out`, finished or not, and return its paths.

    Raises `RecipeError` for a folder that is no study, `DataError` for a file of it that cannot be
    read, and `PosattnError` where the report cannot be written.
    """
    results = collect(out)
    figures = study_figures(results)
    sections = quality_sections(results, figures) + fact_sections(results, _folder_name(out))
    paths = ReportPaths(
        html=out / "report.html",
        markdown=out / "report.md",
        results=out / "results.json",
        figures=out / "figures",
    )
    environment = _environment()
    html = environment.get_template("report.html.j2").render(results=results, sections=sections)
    markdown = environment.get_template("report.md.j2").render(results=results, sections=sections)
    try:
        paths.figures.mkdir(exist_ok=True)
        for figure in figures.values():
            write_bytes(paths.figures / f"{figure.name}.svg", standalone(figure.wide).encode())
            write_bytes(paths.figures / f"{figure.name}.csv", _csv(figure).encode())
        write_bytes(paths.results, f"{results.to_json()}\n".encode())
        write_bytes(paths.markdown, markdown.encode())
        write_bytes(paths.html, html.encode())
    except OSError as error:
        raise PosattnError(f"the report cannot be written to {out}: {error}") from error
    return paths


def markdown_text(text: str) -> str:
    """Return the text with everything escaped that Markdown would read as markup."""
    text = re.sub(r"([\\`*|])", r"\\\1", text)
    text = re.sub(r"<(?=[A-Za-z/!?])", r"\<", text)
    text = re.sub(r"\](?=[(\[:])", r"\]", text)
    return re.sub(r"(?<![^\W_])_|_(?![^\W_])", r"\_", text)


def soft_breaks(text: str) -> Markup:
    """Return the text as HTML that may break after an underscore."""
    return Markup("_<wbr>").join(text.split("_"))


def whole_numbers(text: str) -> str:
    """Return the text with intervals and `n = 3` held together on one line."""
    held = re.sub(r"\[[^\]]*\]", lambda match: match.group().replace(" ", NO_BREAK), text)
    return held.replace("n = ", f"n{NO_BREAK}={NO_BREAK}")


def _environment() -> Environment:
    environment = Environment(
        loader=DictLoader(
            {
                **{name: _template(name) for name in TEMPLATES},
                **{name: style_sheet(name) for name in STYLES},
            }
        ),
        autoescape=lambda name: bool(name and ".html" in name),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["md"] = markdown_text
    environment.filters["raw"] = Markup
    environment.filters["soft"] = soft_breaks
    environment.filters["whole"] = whole_numbers
    return environment


def _template(name: str) -> str:
    package = files("posattn.comparison.report")
    return (package / "templates" / name).read_text(encoding="utf-8")


def _csv(figure: Figure) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(figure.columns)
    writer.writerows(["" if value is None else value for value in row] for row in figure.rows)
    return buffer.getvalue()


def _folder_name(out: Path) -> str:
    """Return the folder as the user gave it, relative to nothing on this machine where possible."""
    return out.as_posix().rstrip("/") if not out.is_absolute() else out.name
