"""The section on budgets: what is held equal between arms, how, and what is left over."""

from posattn.comparison import wording
from posattn.comparison.budgets.schema import ArmBudget, BudgetInfo
from posattn.comparison.results_schema import Results
from posattn.figures.blocks import Block, Column, Section, Table, Text, numbers, words

HOW = {
    "steps": "every arm takes the steps of its recipe, and nothing was changed for it",
    "tokens": "train.steps of each arm was set so that its training tokens come as near to the "
    "baseline's as one step allows",
    "parameters": "encoder.intermediate_size (the feed-forward width) of each arm was set so that "
    "its parameters come as near to the baseline's as {multiple} of width allow",
    "flops": "train.steps of each arm was set so that its training operations come as near to the "
    "baseline's as one step allows; they are counted, not measured: operations of a forward per "
    "token, times tokens, times three",
    "time": "train.steps of each arm was set so that its training time comes as near to the "
    "baseline's as one step allows, by the median ratio of {rounds} timed rounds over all arms in "
    "one process before the runs (every time is in match.json)",
}


def budget_sections(results: Results) -> list[Section]:
    """Return the section on budgets, if the results have that part."""
    budget = results.budget
    if budget is None or len(budget.arms) < 2:
        return []
    return [Section("budget", "Budgets", [_intro(results, budget), _table(results, budget)])]


def _intro(results: Results, budget: BudgetInfo) -> Block:
    options = budget.options
    multiple = options.get("multiple", 1)
    unit = "one unit" if multiple == 1 else f"steps of {multiple} units"
    how = HOW.get(budget.match, "").format(multiple=unit, rounds=options.get("rounds"))
    total = sum(arm.seconds_of_all for arm in budget.arms)
    return Text(
        f"Arms are matched by {budget.held} (match: {budget.match}): {how}. The baseline is "
        f"{results.study.baseline}. All runs together, failed and stopped ones too, trained for "
        f"{wording.count(total)} seconds."
    )


def _table(results: Results, budget: BudgetInfo) -> Table:
    timed = any(arm.expected_seconds for arm in budget.arms)
    columns: list[Column] = words("arm") + numbers("steps", "feed-forward width")
    for title in ("tokens", "parameters", "training operations"):
        columns += numbers(title, "left over")
    columns += numbers("seconds expected") * timed + numbers("seconds of a run", "left over")
    note = (
        "Left over: the relative difference from the baseline. Seconds are medians over finished "
        "runs of the time they trained, evaluations on the way included; runs that share a machine "
        "slow each other. Their differences are medians over seeds."
    )
    rows = [_row(arm, timed, arm.arm == results.study.baseline) for arm in budget.arms]
    return Table("Budget of each arm", columns, rows, note)


def _row(arm: ArmBudget, timed: bool, is_baseline: bool) -> list[str]:
    def left(name: str) -> str:
        value = arm.over_baseline.get(name)
        if is_baseline:
            return "baseline"
        return wording.NONE if value is None else f"{wording.signed(100 * value, 2)} %"

    expected = [wording.number(arm.expected_seconds, 1)] if timed else []
    return [
        arm.arm,
        wording.count(arm.steps),
        wording.count(arm.width),
        *(wording.large(arm.tokens), left("tokens")),
        *(wording.count(arm.parameters), left("parameters")),
        *(wording.large(arm.training_flops), left("training_flops")),
        *expected,
        *(wording.number(arm.seconds, 1), left("seconds")),
    ]
