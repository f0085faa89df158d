"""`report_figures(results)`: every figure that the results of a study allow."""

from posattn.comparison.report.effect_figures import effect_figures
from posattn.comparison.report.inside_figures import inside_figures
from posattn.comparison.report.study_figures import study_figures
from posattn.comparison.report.tuning_figures import tuning_figures
from posattn.comparison.results_schema import Results
from posattn.figures import Figure


def report_figures(results: Results) -> dict[str, Figure]:
    """Return the figures by name, in the order in which they are written."""
    return (
        study_figures(results)
        | effect_figures(results)
        | inside_figures(results)
        | tuning_figures(results)
    )
