"""The sections on all but quality: cost, control, arms, data, environment, limits, commands."""

import json
from typing import Any

from posattn.comparison import wording
from posattn.comparison.report.compute import compute_table
from posattn.comparison.results_schema import (
    ArmResult,
    ControlResult,
    Quartiles,
    Results,
    SpeedSummary,
)
from posattn.figures.blocks import (
    Block,
    Bullets,
    Code,
    Section,
    Table,
    Text,
    numbers,
    words,
)

LONG = 160
MEBIBYTE = 2**20


def fact_sections(results: Results, folder: str) -> list[Section]:
    """Return the sections on cost, control, arms, data, environment, limits and reproduction."""
    sections = [
        Section("cost", "Speed, memory, size", [*_cost(results), compute_table(results)]),
        Section("control", "Control", _control(results)),
        Section("arms", "Arms", _arms(results)),
        Section("data", "Data", _facts(results.data, "data.json", "What is known of the text")),
        Section(
            "environment",
            "Environment",
            _facts(results.environment, "environment.json", "What all runs had in common"),
        ),
        Section("limits", "What this study cannot show", [Bullets(results.limits)]),
        Section("reproduce", "How to reproduce this", _reproduce(results, folder)),
    ]
    return [section for section in sections if section.blocks]


def _cost(results: Results) -> list[Block]:
    rows = [_size_row(arm) for arm in results.arms]
    titles = ("parameters", "of these position", "of these embedding", "operations per token")
    table = Table(
        "Size and memory",
        [*words("arm"), *numbers(*titles, "of these mechanism", "peak memory, MiB")],
        rows,
        "Operations are counted, not measured (FLOPs, forward pass). A dash: not evaluated yet.",
        name="size",
    )
    if results.speed is None:
        return [table, Text("Speed was not measured, or not yet: there is no speed.json.")]
    stages = dict.fromkeys(s.stage for arm in results.arms for s in arm.speed)
    conditions = ", ".join(f"{key} {value}" for key, value in results.speed.conditions.items())
    note = (
        f"Timed in {wording.plural(results.speed.rounds, 'round')}; each round times every arm "
        f"once, so that a drift of the machine hits all alike. Median [quartiles]. Ratio: time per "
        f"token over that of {results.study.baseline} in the same round. Conditions: {conditions}."
    )
    speed: list[Block] = [
        _stage_table(results, stage, note if number == 0 else "")
        for number, stage in enumerate(stages)
    ]
    refused = [f"{arm}: not timed, {reason}" for arm, reason in results.speed.refused.items()]
    return [*speed, Bullets(refused), table] if refused else [*speed, table]


def _stage_table(results: Results, stage: str, note: str) -> Table:
    rows = []
    for arm in results.arms:
        timed = next((s for s in arm.speed if s.stage == stage), None)
        rows.append([arm.name, *_speed_cells(timed, is_baseline=arm.is_baseline)])
    titles = ("n", "milliseconds", "tokens per second")
    return Table(
        f"Speed: {stage.replace('_', ' ')}",
        [*words("arm"), *numbers(*titles, f"time against {results.study.baseline}")],
        rows,
        note,
        name=f"speed-{stage.replace('_', '-')}",
    )


def _speed_cells(timed: SpeedSummary | None, *, is_baseline: bool) -> list[str]:
    if timed is None:
        return ["0", *[wording.NONE] * 3]
    ratio = wording.NONE
    if is_baseline:
        ratio = "1 (baseline)"
    elif timed.ratio is not None:
        ratio = f"{_quartiles(timed.ratio, 1.0, 2)} \u00d7"
    seconds = _quartiles(timed.seconds, 1e3, 1)
    return [str(timed.seconds.n), seconds, _quartiles(timed.tokens_per_second, 1.0, 0), ratio]


def _quartiles(found: Quartiles, factor: float, digits: int) -> str:
    middle, low, high = (
        wording.number(value * factor, digits) for value in (found.median, found.lower, found.upper)
    )
    return f"{middle} [{low}, {high}]"


def _size_row(arm: ArmResult) -> list[str]:
    sizes = arm.sizes
    memory = None if arm.peak_memory_bytes is None else arm.peak_memory_bytes / MEBIBYTE
    return [
        arm.name,
        wording.count(sizes.parameters),
        wording.count(sizes.position_parameters),
        wording.count(sizes.embedding_parameters),
        wording.large(sizes.flops_per_token),
        wording.large(sizes.mechanism_flops_per_token),
        wording.number(memory, 0),
    ]


def _control(results: Results) -> list[Block]:
    factors = wording.listed(results.study.varies) or "nothing"
    intro = Text(f"The declared factor of this study is {factors}.")
    if not results.control:
        return [intro, Text("plan.json lists no rule of control: nothing is proved here.")]
    rules = sorted(results.control, key=_order)
    rows = [[rule.rule, _outcome(rule), rule.detail] for rule in rules]
    marked = {i: "bad" for i, rule in enumerate(rules) if rule.broken}
    caption = "Rules of control, declared extra differences first"
    return [
        intro,
        Table(caption, words("rule", "held", "detail"), rows, marked=marked, name="control"),
    ]


def _outcome(rule: ControlResult) -> str:
    if rule.expected and rule.held is False:
        return "declared otherwise"
    return {True: "held", False: "NOT HELD", None: "not checked"}[rule.held]


def _order(rule: ControlResult) -> int:
    return 0 if rule.broken else 1 if rule.expected else 2


def _arms(results: Results) -> list[Block]:
    described = any(arm.description for arm in results.arms)
    rows = []
    for arm in results.arms:
        name = f"{arm.name} (baseline)" if arm.is_baseline else arm.name
        changes = "; ".join(f"{key}: {shown(value)}" for key, value in arm.changes.items())
        digest = (arm.recipe_digest or wording.NONE)[:12]
        about = [arm.description or ""] if described else []
        rows.append([name, changes or "nothing", *about, digest])
    about_title = words("description") if described else []
    columns = [*words("arm", "changes to the base recipe"), *about_title, *words("recipe digest")]
    note = "Each run keeps its whole resolved recipe as recipe.yaml in its folder."
    blocks: list[Block] = [Table("What each arm changes", columns, rows, note, name="arms")]
    return blocks + [contract_table(arm) for arm in results.arms if arm.contract]


def contract_table(arm: ArmResult) -> Table:
    """Return the architecture contract of an arm that has one."""
    caption = f"Architecture contract of {arm.name}"
    if isinstance(arm.contract, str):
        lines = [[line] for line in arm.contract.splitlines() if line.strip()]
        return Table(caption, words("statement"), lines, folded=caption)
    rows = []
    for part, content in (arm.contract or {}).items():
        facts = content if isinstance(content, dict) else {"": content}
        rows += [[f"{part}: {key}" if key else part, shown(value)] for key, value in facts.items()]
    return Table(caption, words("part", "statement"), rows, folded=caption)


def _facts(content: dict[str, Any], file: str, caption: str) -> list[Block]:
    common, differs = content.get("common") or {}, content.get("differs") or {}
    if not common and not differs:
        return [Text(f"No run has written its {file} yet.")]
    listed = {key: value for key, value in common.items() if _is_table(value)}
    rows = [[_words_of(key), shown(value)] for key, value in common.items() if key not in listed]
    blocks: list[Block] = [Table(caption, words("what", "value"), rows)]
    blocks += [_nested(key, value) for key, value in listed.items()]
    if differs:
        different = [[_words_of(key), _different(values)] for key, values in differs.items()]
        title = f"What differs between runs (each run's {file} has its own)"
        blocks.append(Table(title, words("what", "values"), different, folded=title))
    return blocks


def _words_of(key: str) -> str:
    return key.replace("_", " ").replace(".", ": ")


def _is_table(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(v, dict) for v in value)


def _nested(key: str, items: list[dict[str, Any]]) -> Table:
    columns = list(dict.fromkeys(name for item in items for name in item))
    rows = [[shown(item.get(name)) for name in columns] for item in items]
    title = f"{key} ({len(items)})"
    return Table(title, words(*map(_words_of, columns)), rows, folded=title)


def _different(values: dict[str, Any]) -> str:
    distinct = list(dict.fromkeys(shown(value) for value in values.values()))
    return f"{wording.plural(len(distinct), 'value')}: {_cut(', '.join(distinct))}"


def shown(value: object) -> str:
    """Return a plain value as text; a mapping or list as one short line."""
    if value is None:
        return wording.NONE
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and abs(value) >= 10_000:
        return wording.count(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {shown(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return _cut("[" + ", ".join(shown(item) for item in value) + "]")
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _cut(text: str) -> str:
    return text if len(text) <= LONG else f"{text[: LONG - 1]}\u2026"


def _reproduce(results: Results, folder: str) -> list[Block]:
    text = Text(
        "The study with all recipes resolved is study.yaml in this folder. With the versions under "
        "Environment, the first command runs it again into a new folder; run again on the same "
        "folder, it continues what is unfinished. The second draws this report anew."
    )
    commands = [
        f"posattn compare {folder}/study.yaml --out {folder}-again",
        f"posattn report {folder}",
    ]
    files = Bullets(
        [
            "results.json: every number of this page (schema posattn-results/1)",
            "arms/ARM.html: one page for each arm, with its recipe, contract, runs and files",
            "figures/*.csv and figures/*.svg: data and picture of each figure",
            "tables/*.tex and tables/*.csv: the main tables for LaTeX (booktabs) and unrounded",
            "runs/ARM/seed-N/metrics.jsonl: every logged step of each run",
            "runs/ARM/seed-N/examples.npz: scores of each validation sample",
        ]
    )
    notes: list[Block] = [Text("Notes:"), Bullets(results.notes)] if results.notes else []
    return [text, Code(commands), files, *notes]
