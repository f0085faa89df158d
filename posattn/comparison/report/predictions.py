"""The section on a probe: what it asks, what the maths predicts of each arm, and what came out."""

from posattn.comparison.results_schema import PredictionOutcome, ProbeInfo, Results, SolvedShare
from posattn.figures.blocks import Block, Section, Table, Text, numbers, words

WORDS = {
    "held": "held",
    "mixed": "mixed: some seeds only",
    "broken": "DID NOT HOLD",
    "not tested": "not tested",
}


def prediction_sections(results: Results) -> list[Section]:
    """Return the section on the study's probe, if it has one."""
    if results.probe is None:
        return []
    blocks: list[Block] = [Text(_question(results.probe)), _verdicts(results.predictions)]
    if results.predictions:
        blocks.append(_outcomes(results.predictions))
    blocks.append(_solved(results.probe))
    if results.probe.lengths:
        blocks.append(_by_length(results.probe))
    return [Section("predictions", "What the maths predicts", blocks)]


def _question(probe: ProbeInfo) -> str:
    return (
        f"{probe.question} Guessing gives {probe.chance:.2f}, and a run with "
        f"{probe.solved:.2f} or more counts as solved. Predictions were written into plan.json "
        "before the first step; they follow from what each part promises of position (symmetry, "
        "invariance, what a term reads), never from a mechanism's name. Where the maths says nothing, "
        "nothing is predicted."
    )


def _verdicts(outcomes: list[PredictionOutcome]) -> Text:
    if not outcomes:
        return Text("The maths says nothing about these arms.")
    counts = {key: sum(outcome.verdict == key for outcome in outcomes) for key in WORDS}
    text = (
        f"Of {len(outcomes)} predictions {counts['held']} held in every seed, {counts['mixed']} in some "
        f"seeds only, {counts['broken']} in none; {counts['not tested']} could not be tested."
    )
    lost = [f"{o.arm} ({_bounds(o)} at {o.score})" for o in outcomes if o.verdict == "broken"]
    return Text(f"{text} Did not hold: {'; '.join(lost)}." if lost else text)


def _outcomes(outcomes: list[PredictionOutcome]) -> Table:
    rows = [
        [
            outcome.arm,
            outcome.score.replace("_", " "),
            _bounds(outcome),
            ", ".join(_number(value) for value in outcome.values.values()),
            f"{outcome.in_range} of {outcome.n}",
            WORDS[outcome.verdict],
            outcome.because,
        ]
        for outcome in outcomes
    ]
    columns = [
        *words("arm", "score"),
        *numbers("predicted", "by seed", "seeds within"),
        *words("outcome", "because"),
    ]
    note = (
        "Accuracies are shares of the places asked about. A dash: no score, the run did not finish."
    )
    return Table("Prediction and outcome", columns, rows, note)


def _solved(probe: ProbeInfo) -> Table:
    rows = [[share.arm, *_share(share)] for share in probe.arms]
    note = (
        f"Solved: {probe.score.replace('_', ' ')} of {probe.solved:.2f} or more at the training "
        "length. The interval is exact (Clopper and Pearson) and wide with few seeds."
    )
    columns = [*words("arm"), *numbers("solved", "runs started or planned", "95 % interval")]
    return Table("Share of runs that solved it", columns, rows, note)


def _by_length(probe: ProbeInfo) -> Table:
    lengths = sorted({item.length for item in probe.lengths})
    cells = {(item.arm, item.length): item.values.values() for item in probe.lengths}
    rows = [
        [arm, *(", ".join(map(_number, cells.get((arm, length), []))) for length in lengths)]
        for arm in dict.fromkeys(item.arm for item in probe.lengths)
    ]
    note = "One number for each seed. A dash: the arm does not take this length."
    return Table("Accuracy by length", [*words("arm"), *numbers(*map(str, lengths))], rows, note)


def _share(share: SolvedShare) -> list[str]:
    return [
        f"{share.solved} of {share.n}",
        str(share.runs),
        f"{share.low:.2f} to {share.high:.2f}",
    ]


def _bounds(outcome: PredictionOutcome) -> str:
    parts = []
    if outcome.at_least is not None:
        parts.append(f"at least {outcome.at_least:.2f}")
    if outcome.at_most is not None:
        parts.append(f"at most {outcome.at_most:.2f}")
    return ", ".join(parts)


def _number(value: float | None) -> str:
    return "\u2013" if value is None else f"{value:.3f}"
