"""`write_suite_report(out)`: suite.json, report.html, report.md and the figures of a suite."""

from pathlib import Path

from posattn.comparison.overview import Banner, Overview, OverviewPaths, write_overview
from posattn.comparison.suite.collect import collect_suite
from posattn.comparison.suite.figures import suite_figures
from posattn.comparison.suite.schema import SuiteResults
from posattn.comparison.suite.sections import report_of, suite_sections


def write_suite_report(out: Path) -> OverviewPaths:
    """Write the report of the suite in `out`, finished or not, and return its paths.

    The report of a task is written too where its runs have changed since. Raises `RecipeError` for a
    folder without tasks, `DataError` for a file that cannot be read.
    """
    results = collect_suite(out)
    figures = suite_figures(results)
    suite = results.suite
    finished = f"{suite.runs_finished} of {suite.runs_planned}"
    page = Overview(
        kind=f"posattn suite {suite.name}",
        title=suite.title or suite.name,
        texts=[text for text in (suite.question, suite.description) if text],
        banners=_banners(results),
        answer=results.answer,
        facts={
            "baseline": suite.baseline,
            "tasks": str(suite.tasks_planned),
            "arms": str(len(suite.arms)),
            "runs finished": finished,
        },
        links={task.name: report_of(task) for task in results.tasks if task.arms},
        sections=suite_sections(results, figures, _folder_name(out)),
        footer=(
            f"Written by posattn {results.posattn_version} from the results of every task. Numbers: "
            f"suite.json ({results.format})."
        ),
    )
    return write_overview(page, figures.values(), out, ("suite.json", results.to_json()))


def _banners(results: SuiteResults) -> list[Banner]:
    banners = []
    broken = [f"{task.name}: {rule}" for task in results.tasks for rule in task.broken]
    if broken:
        text = "Differences in these tasks may come from what differs besides the declared factor."
        banners.append(Banner("Control is broken.", text, broken, broken=True))
    if not results.complete:
        done = f"{results.suite.tasks_complete} of {results.suite.tasks_planned}"
        title = f"Not complete yet: every run has ended in {done} tasks."
        text = (
            "What stands here may still change; write the report again when the others have ended."
        )
        banners.append(Banner(title, text))
    return banners


def _folder_name(out: Path) -> str:
    return out.as_posix().rstrip("/") if not out.is_absolute() else out.name
