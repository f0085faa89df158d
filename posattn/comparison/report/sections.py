"""All sections of a report and their order: the one place where a module of sections is entered."""

from posattn.comparison.report.budget import budget_sections
from posattn.comparison.report.effects import effect_sections
from posattn.comparison.report.facts import fact_sections
from posattn.comparison.report.inside import inside_sections
from posattn.comparison.report.predictions import prediction_sections
from posattn.comparison.report.quality import quality_sections
from posattn.comparison.report.standards import standard_sections
from posattn.comparison.report.tuning import tuning_sections
from posattn.comparison.results_schema import Results
from posattn.figures import Figure
from posattn.figures.blocks import Section

ORDER = (
    "predictions",
    "differences",
    "effects",
    "scores",
    "curves",
    "length",
    "position",
    "inside",
    "other",
    "cost",
    "budget",
    "tuning",
    "control",
    "standards",
    "arms",
    "data",
    "environment",
    "limits",
    "reproduce",
)
"""The ids of all sections; the answer stands before them, in the head of the page."""


def study_sections(results: Results, figures: dict[str, Figure], folder: str) -> list[Section]:
    """Return the sections that have content, in order; `folder` is named in commands to copy."""
    sections = [
        *prediction_sections(results),
        *quality_sections(results, figures),
        *effect_sections(results, figures),
        *inside_sections(results, figures),
        *fact_sections(results, folder),
        *budget_sections(results),
        *tuning_sections(results, figures),
    ]
    shown = [section for section in sections if section.blocks]
    return in_order([*shown, *standard_sections(results, shown)])


def in_order(sections: list[Section]) -> list[Section]:
    """Return the sections by their place in `ORDER`, those of one id as given.

    Raises ValueError for an id without a place.
    """
    lost = sorted({section.id for section in sections} - set(ORDER))
    if lost:
        raise ValueError(f"sections without a place in ORDER: {', '.join(lost)}")
    return sorted(sections, key=lambda section: ORDER.index(section.id))
