"""`write_comparison(folders, out)`: one page, compared.json and CSV over several studies."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from urllib.parse import quote

from posattn.comparison import wording
from posattn.comparison.overview import Banner, Overview, OverviewPaths, write_overview
from posattn.comparison.report.facts import shown
from posattn.comparison.report.files import to_csv
from posattn.comparison.several.collect import compare_studies
from posattn.comparison.several.figures import comparison_figures
from posattn.comparison.several.schema import Compared, ComparedStudy
from posattn.errors import PosattnError, RecipeError
from posattn.figures import Figure
from posattn.figures.blocks import (
    Block,
    Bullets,
    Code,
    Picture,
    Section,
    Table,
    Text,
    numbers,
    words,
)
from posattn.figures.figure import Row
from posattn.training.durable import write_bytes


def write_comparison(folders: Sequence[Path], out: Path) -> OverviewPaths:
    """Write the page over the studies in `folders` into the folder `out`, and return its paths.

    Raises `RecipeError` where `out` is the folder of a study or of a suite itself.
    """
    for name in ("plan.json", "suite_plan.json"):
        if (out / name).is_file():
            raise RecipeError(f"{out} is the folder of a study; choose another --out")
    found = compare_studies(folders)
    figures = comparison_figures(found)
    page = Overview(
        kind="posattn report of several studies",
        title=" and ".join(dict.fromkeys(study.label for study in found.studies))
        if len(found.studies) < 4
        else f"{len(found.studies)} studies",
        texts=[],
        banners=_banners(found),
        answer=found.answer,
        facts={"studies": str(len(found.studies)), "arms": str(len(found.arms))},
        links={study.label: _report_of(study, out) for study in found.studies},
        sections=_sections(found, figures, folders, out),
        footer=f"Written by posattn {found.posattn_version}. Numbers: compared.json ({found.format}).",
    )
    paths = write_overview(page, figures, out, ("compared.json", found.to_json()))
    try:
        (out / "tables").mkdir(exist_ok=True)
        for name, (columns, rows) in _data(found).items():
            write_bytes(out / "tables" / f"{name}.csv", to_csv(columns, rows).encode())
    except OSError as error:
        raise PosattnError(f"the tables cannot be written to {out}: {error}") from error
    return paths


def _banners(found: Compared) -> list[Banner]:
    broken = [f"{study.label}: {rule}" for study in found.studies for rule in study.broken]
    text = "Differences in these studies may come from what differs besides the declared factor."
    return [Banner("Control is broken.", text, broken, broken=True)] if broken else []


def _report_of(study: ComparedStudy, out: Path) -> str:
    return quote(f"{Path(os.path.relpath(study.folder, out)).as_posix()}/report.html")


def _sections(
    found: Compared, figures: list[Figure], folders: Sequence[Path], out: Path
) -> list[Section]:
    pictures: list[Block] = [Picture(figure, "figures") for figure in figures]
    command = " ".join(folder.as_posix() for folder in folders)
    sections = [
        Section("differs", "What differs between the studies", [_conditions(found)]),
        Section("arms", "Which arms are the same", [_arms(found)]),
        Section("scores", "Scores side by side", _scores(found)),
        Section("contrasts", "Differences within each study", [*pictures, _contrasts(found, out)]),
        Section("studies", "Studies", [_studies(found, out)]),
        Section("limits", "What this cannot show", [Bullets(found.limits)]),
        Section(
            "reproduce",
            "How to reproduce this",
            [
                Text("Reads the studies anew, finished or not. Data of every table is in tables/."),
                Code([f"posattn report {command} --out {out.as_posix()}"]),
            ],
        ),
    ]
    return [section for section in sections if section.blocks]


def _conditions(found: Compared) -> Block:
    if not found.conditions:
        return Text(
            "Nothing: all values that the arms of each study share are equal in all studies."
        )
    labels = [study.label for study in found.studies]
    rows = [
        [condition.path, condition.kind, *(shown(condition.values[label]) for label in labels)]
        for condition in found.conditions
    ]
    note = (
        "Values that all arms of a study share and that another study has otherwise. What varies between "
        "the arms of a study is no condition and is not listed."
    )
    caption = "Conditions that are not equal in all studies"
    return Table(caption, words("what", "kind", *labels), rows, note, name="conditions")


def _arms(found: Compared) -> Table:
    rows = [
        [
            arm.name,
            ", ".join(arm.studies),
            arm.sameness,
            ", ".join(arm.differs),
            ", ".join(arm.also),
        ]
        for arm in found.arms
    ]
    columns = words("arm", "studies", "recipe", "differs in", "same recipe under another name")
    note = "Compared by resolved recipe, without names and seeds; where none is stored, by digest."
    return Table("Arms over the studies", columns, rows, note, name="arms")


def _scores(found: Compared) -> list[Block]:
    blocks: list[Block] = []
    for metric_name in dict.fromkeys(study.metric.name for study in found.studies):
        studies = [study for study in found.studies if study.metric.name == metric_name]
        metric = studies[0].metric
        rows = []
        for match in found.arms:
            if any(study.label in match.studies for study in studies):
                cells = [_cell(study, match.name) for study in studies]
                rows.append([match.name, match.sameness, *cells])
        caption = f"{metric.label}, {metric.unit} ({metric.better} is better)"
        columns = [*words("arm", "recipe"), *numbers(*(study.label for study in studies))]
        note = (
            "Mean \u00b1 sample standard deviation over the finished seeds, with their number. Arms of one "
            "name with another recipe are not the same arm."
        )
        blocks.append(Table(caption, columns, rows, note, name=f"scores-{metric_name}"))
    return blocks


def _cell(study: ComparedStudy, name: str) -> str:
    arm = next((arm for arm in study.arms if arm.name == name), None)
    if arm is None:
        return wording.NONE
    planned = len(arm.values)
    seeds = str(arm.summary.n) if arm.summary.n == planned else f"{arm.summary.n} of {planned}"
    return f"{wording.mean_and_sd(study.metric, arm.summary)} ({seeds})"


def _contrasts(found: Compared, out: Path) -> Table:
    rows: list[list[str]] = []
    links: dict[tuple[int, int], str] = {}
    for study in found.studies:
        for arm in study.arms:
            if arm.is_baseline:
                continue
            links[len(rows), 1] = f"{_report_of(study, out)}#differences"
            low, high = (
                (arm.difference.low, arm.difference.high) if arm.difference else (None, None)
            )
            mean = arm.difference.mean if arm.difference else None
            rows.append(
                [
                    arm.name,
                    study.label,
                    study.baseline,
                    arm.verdict,
                    study.metric.unit_of_difference,
                    str(arm.difference.n if arm.difference else 0),
                    wording.difference(study.metric, mean),
                    wording.interval(study.metric, low, high),
                ]
            )
    rows_and_links = sorted(enumerate(rows), key=lambda item: (_order(found, item[1][0]), item[0]))
    moved = {(new, 1): links[old, 1] for new, (old, _) in enumerate(rows_and_links)}
    columns = [
        *words("arm", "study", "against", "verdict", "unit"),
        *numbers("n", "difference", "95 % interval"),
    ]
    note = "Paired over seeds within a study; verdicts are corrected by Holm's method within it."
    return Table(
        "Difference from the study's own baseline",
        columns,
        [row for _, row in rows_and_links],
        note,
        name="contrasts",
        links=moved,
    )


def _order(found: Compared, arm: str) -> int:
    return [match.name for match in found.arms].index(arm)


def _studies(found: Compared, out: Path) -> Table:
    rows = [
        [
            study.label,
            study.title or study.name,
            study.baseline,
            ", ".join(map(str, study.seeds)),
            f"{study.runs_finished} of {study.runs_planned}",
            "; ".join(study.broken) or "held",
        ]
        for study in found.studies
    ]
    columns = words("study", "title", "baseline of it", "seeds", "runs finished", "control")
    links = {(n, 0): _report_of(study, out) for n, study in enumerate(found.studies)}
    marked = {n: "bad" for n, study in enumerate(found.studies) if study.broken}
    return Table("Every study", columns, rows, marked=marked, name="studies", links=links)


def _data(found: Compared) -> dict[str, tuple[tuple[str, ...], Iterable[Row]]]:
    """Return the columns and rows of each CSV file, by name."""
    pairs = [(study, arm) for study in found.studies for arm in study.arms]
    scores: list[Row] = [
        (s.label, a.name, s.metric.name, seed, value)
        for s, a in pairs
        for seed, value in a.values.items()
    ]
    contrasts: list[Row] = [
        (s.label, a.name, s.baseline, s.metric.name, d.n, d.mean, d.sd, d.low, d.high, a.verdict)
        for s, a in pairs
        if (d := a.difference) is not None
    ]
    conditions: list[Row] = [
        (c.kind, c.path, label, shown(value))
        for c in found.conditions
        for label, value in c.values.items()
    ]
    named = ("study", "arm", "against", "metric", "n", "mean", "sd", "low_95", "high_95", "verdict")
    return {
        "scores": (("study", "arm", "metric", "seed", "value"), scores),
        "contrasts": (named, contrasts),
        "conditions": (("kind", "path", "study", "value"), conditions),
    }
