"""What the answer says of tuning: arms that are best at the edge of the grid, and failed trials."""

from posattn.comparison import wording
from posattn.comparison.results_schema import Results, Statement
from posattn.comparison.tuning.schema import ArmTuning


def tuning_statements(results: Results) -> list[Statement]:
    """Return a statement where arms are not tuned or trials failed; none where all went well."""
    tuning = results.tuning
    if tuning is None:
        return []
    items = [edge_in_words(arm) for arm in tuning.arms if not arm.tuned]
    text = ""
    if items:
        text = (
            f"{wording.plural(len(items), 'arm')} of {len(tuning.arms)} best at the edge of the grid: "
            "widen it, for all arms. Until then differences from these arms may be those of their "
            "values."
        )
    failed = [f"{arm.arm}: {len(arm.failed)}" for arm in tuning.arms if arm.failed]
    if failed:
        text += (
            f" Trials that diverged or failed, and were never chosen, of {tuning.trials_per_arm} per "
            f"arm: {', '.join(failed)}."
        )
    if not text:
        return []
    heading = "Not tuned" if items else "Tuning"
    return [Statement(heading=heading, text=text.strip(), items=items)]


def edge_in_words(arm: ArmTuning) -> str:
    """Return which chosen values of an arm are the lowest or highest tried."""
    ends = [f"{path} {arm.values[path]} is the {end} tried" for path, end in arm.edges.items()]
    return f"{arm.arm}: {'; '.join(ends)}"
