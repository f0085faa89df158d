"""What a study cannot show, said from its own numbers."""

from typing import Any

from posattn.comparison import wording
from posattn.comparison.results_schema import Results
from posattn.comparison.study_files import StudyFiles
from posattn.comparison.tuning.schema import values_in_words

DESCRIPTIVE = (
    "Losses by length and by position, learning curves and all secondary scores are shown with "
    "their spread and are not tested: read no verdict from them."
)


def limits(results: Results, files: StudyFiles) -> list[str]:
    """Return one sentence or two per limit, the weightiest first."""
    found = [
        _training(results),
        _tuned(results) or _learning_rates(files),
        _seeds(results),
        _detectable(results),
        _budgets(results),
        _text(results),
        _speed(results),
        DESCRIPTIVE,
    ]
    return [sentence for sentence in found if sentence]


def _training(results: Results) -> str:
    finished = [run for run in results.runs if run.state == "finished"]
    if not finished:
        return "No run is finished: nothing here is a result yet."
    tokens, steps = max(run.tokens for run in finished), max(run.step for run in finished)
    counts = [a.sizes.parameters for a in results.arms if a.sizes.parameters is not None]
    corpus = (results.data.get("common") or {}).get("train.tokens")
    passes = f" ({tokens / corpus:.2g} passes over the training text)" if corpus else ""
    size = f" of {wording.large(max(counts))} parameters at most" if counts else ""
    return (
        f"Size and stage: models{size} after {wording.count(steps)} steps and "
        f"{wording.large(tokens)} tokens{passes}. Differences this early need not hold at the end of a "
        "long training, nor at a larger size; mechanisms that learn faster look better here."
    )


def _tuned(results: Results) -> str:
    """Say what tuning chose and on what, and which arms it left at the edge of the grid."""
    tuning = results.tuning
    if tuning is None:
        return ""
    chosen = "; ".join(f"{arm.arm} {values_in_words(arm.values)}" for arm in tuning.arms)
    text = (
        f"Tuning: {wording.listed(list(tuning.grid))} chosen for each arm from the same "
        f"{wording.plural(tuning.trials_per_arm, 'trial')}, by {tuning.select_by} in the mean over "
        f"{wording.plural(len(tuning.seeds), 'seed')} apart from those reported ({chosen}). Nothing "
        "else was tuned. The choice saw the validation text that the scores are from, in all arms "
        "alike."
    )
    edges = [arm.arm for arm in tuning.arms if not arm.tuned]
    if edges:
        text += (
            f" {wording.listed(edges)}: best at the edge of the grid, which counts as not tuned; an "
            "arm may look worse because the grid ends too early for it."
        )
    return text


def _learning_rates(files: StudyFiles) -> str:
    rates: dict[Any, set[str]] = {}
    for run in files.runs:
        train = (run.recipe or {}).get("train") or {}
        if "learning_rate" in train:
            rates.setdefault(train["learning_rate"], set()).add(run.arm)
    if not rates:
        return ""
    if len(rates) == 1:
        return (
            f"Tuning: one learning rate ({next(iter(rates))}) for all arms, tuned for none of them "
            "here. An arm may look worse because this rate suits it less."
        )
    parts = [f"{rate} ({', '.join(sorted(arms))})" for rate, arms in rates.items()]
    return f"Tuning: learning rates differ by arm: {'; '.join(parts)}."


def _seeds(results: Results) -> str:
    return (
        f"Seeds: {wording.plural(len(results.study.seeds), 'seed')} per arm, paired. Seeds vary "
        "initialisation, data order and masks, not the split of the text nor the hyper-parameters."
    )


def _detectable(results: Results) -> str:
    metric = results.primary
    parts, below = [], []
    for contrast in results.family("baseline"):
        judged, mean = contrast.judgement, contrast.difference.mean
        if judged is None or judged.smallest_detectable is None or mean is None:
            continue
        parts.append(f"{contrast.first} {wording.score(metric, judged.smallest_detectable)}")
        if abs(mean) < judged.smallest_detectable:
            below.append(contrast.first)
    if not parts:
        return ""
    text = (
        "Smallest differences from the baseline that this study would have shown with 80 % power "
        f"after correction ({metric.unit_of_difference}): {', '.join(parts)}."
    )
    if below:
        text += f" The differences seen for {wording.listed(below)} are below theirs."
    return text


def _budgets(results: Results) -> str:
    base = results.baseline
    left = []
    for arm in results.arms:
        if arm.is_baseline:
            continue
        parts = []
        if arm.sizes.parameters and base.sizes.parameters:
            parts.append(f"parameters {_percent(arm.sizes.parameters / base.sizes.parameters)}")
        if arm.sizes.flops_per_token and base.sizes.flops_per_token:
            ratio = arm.sizes.flops_per_token / base.sizes.flops_per_token
            parts.append(f"operations per token {_percent(ratio)}")
        timed = next((s.ratio for s in arm.speed if s.stage == "training_step" and s.ratio), None)
        if timed:
            parts.append(f"time per step {_percent(timed.median)}")
        parts += _left_over_in_all(results, arm.name)
        if parts:
            left.append(f"{arm.name}: {', '.join(parts)}")
    held = results.budget.held if results.budget else "steps and tokens"
    if not left:
        others = "parameters or time" if held == "steps and tokens" else "anything else"
        return f"Budgets: arms are matched by {held}, not by {others}."
    return (
        f"Budgets: arms are matched by {held}. Left over against the baseline: {'; '.join(left)}."
    )


def _left_over_in_all(results: Results, arm: str) -> list[str]:
    """Return what whole runs of an arm took beyond the baseline's, where steps were changed."""
    if results.budget is None or results.budget.match in ("steps", "parameters"):
        return []
    over = results.budget.arm(arm).over_baseline
    names = {"tokens": "tokens", "training_flops": "training operations", "seconds": "seconds"}
    return [
        f"{words} {_percent(1 + found)}"
        for name, words in names.items()
        if (found := over.get(name)) is not None
    ]


def _percent(ratio: float) -> str:
    change = wording.signed((ratio - 1) * 100, 1)
    return f"{change} %"


def _text(results: Results) -> str:
    data = results.recipe.get("data") or {}
    corpus = data.get("corpus")
    name = corpus.get("name") if isinstance(corpus, dict) else corpus
    length = results.study.train_length
    if name is None and length is None:
        return ""
    trained = f", in sequences of {length} tokens" if length else ""
    named = f" ({name})" if name else ""
    return (
        f"Text: one corpus{named}{trained}. Other text, languages and lengths may order the "
        "mechanisms differently."
    )


def _speed(results: Results) -> str:
    if results.speed is None:
        return "Speed was not measured."
    device = results.speed.conditions.get("device", "one device")
    return (
        f"Speed: times are of {device} at this size and length, on a machine that may have been "
        "shared; another device or length can reverse them."
    )
