"""Standards of how arms are made equal, measured, and kept honest about what failed."""

from collections import Counter

from posattn.comparison import wording
from posattn.comparison.answer import CLAIM_SEEDS
from posattn.comparison.report.standards.finding import Standing, by_rules, finished, rule, share
from posattn.comparison.results_schema import Results
from posattn.comparison.statistics import smallest_sign_flip_p


def declared_factors(results: Results) -> Standing:
    """Arms differ in nothing but the declared factors."""
    found = rule(results, "declared factors only")
    standing = by_rules([found], "Resolved recipes compared before the first step")
    others = [*results.study.declared, *results.study.compensations]
    if standing.status == "yes" and others:
        how = f"{standing.how} Further differences are declared: {wording.listed(others)}."
        return Standing("yes", how, "control")
    return standing


def same_batches(results: Results) -> Standing:
    """Batches and masks come from seed and step, and are hashed."""
    return by_rules(
        [rule(results, "batches", "masks")], "Hashes of the runs' own records are equal"
    )


def same_start(results: Results) -> Standing:
    """Shared parameters start equal, the others are listed."""
    rules = [rule(results, "shared parameters start"), rule(results, "only some arms have")]
    return by_rules(rules, "By name, to the bit")


def sizes(results: Results) -> Standing:
    """Parameters and operations are counted."""
    counted = [
        arm
        for arm in results.arms
        if arm.sizes.parameters is not None and arm.sizes.flops_per_token is not None
    ]
    if not counted:
        how = "Not evaluated, or not yet: the evaluation 'size' counts them."
        return Standing("no", how, "cost")
    how = (
        f"Parameters (all, position, embedding) and operations per token with the mechanism's part "
        f"for {share(len(counted), len(results.arms), 'arm')}."
    )
    return Standing("yes" if len(counted) == len(results.arms) else "partly", how, "cost")


def time_and_memory(results: Results) -> Standing:
    """Step time and memory are measured, interleaved, with spread."""
    if results.speed is None:
        return Standing("no", "Not measured, or not yet: there is no speed.json.", "cost")
    timed = [arm for arm in results.arms if arm.speed]
    weighed = [arm for arm in results.arms if arm.peak_memory_bytes is not None]
    how = (
        f"{share(len(timed), len(results.arms), 'arm')} timed in turn in each of "
        f"{wording.plural(results.speed.rounds, 'round')}, with quartiles; peak memory of "
        f"{share(len(weighed), len(results.arms), 'arm')}."
    )
    whole = len(timed) == len(weighed) == len(results.arms)
    return Standing("yes" if whole else "partly", how[0].upper() + how[1:], "cost")


def seeds(results: Results) -> Standing:
    """Reporting seeds are enough, paired, and apart from those of tuning."""
    number = len(results.study.seeds)
    least = wording.p_value(smallest_sign_flip_p(number))
    how = f"{wording.plural(number, 'seed')}, paired across arms; the least exact p is {least}."
    if number < CLAIM_SEEDS:
        how += f" That is a screen: a claim needs {CLAIM_SEEDS}."
    return Standing("yes" if number >= CLAIM_SEEDS else "partly", how, "differences")


def failures(results: Results) -> Standing:
    """Failed runs stay in the tables."""
    lost = Counter(run.state for run in results.runs if run.state != "finished")
    counted = ", ".join(f"{number} {state}" for state, number in lost.items()) or "none failed"
    done, planned = results.study.runs_finished, results.study.runs_planned
    how = f"{done} of {planned} planned runs finished ({counted}); every run has a row with its reason."
    return Standing("yes", how, "scores")


def samples(results: Results) -> Standing:
    """Scores of every sample are saved."""
    runs = finished(results)
    saved = [run for run in runs if "examples.npz" in run.files]
    if not saved:
        return Standing("no", "No finished run has an examples.npz.", "scores")
    of_runs = share(len(saved), len(runs), "finished run")
    how = f"Loss and correctness of every validation sample of {of_runs}."
    return Standing("yes" if len(saved) == len(runs) else "partly", how, "reproduce")


def environment(results: Results) -> Standing:
    """Versions, threads, machine, seeds, git state, data and licences are frozen."""
    common = results.environment.get("common") or {}
    data = results.data.get("common") or {}
    wanted = {
        "library versions": any(key.startswith("versions.") for key in common),
        "threads": "threads" in common,
        "CPU": "cpu" in common,
        "git state": any(key.startswith("git.") for key in common),
        "checksums of the text": bool(data.get("files")),
        "licence of the text": bool(data.get("licence")),
    }
    there = [name for name, found in wanted.items() if found]
    missing = [name for name, found in wanted.items() if not found]
    if not there:
        return Standing("no", "No run has recorded its environment yet.", "environment")
    how = f"Recorded and equal in all runs: {wording.listed(there)}."
    if missing:
        how += f" Not recorded, or not equal: {wording.listed(missing)}."
    if common.get("git.dirty"):
        how += " The working tree of posattn had changes that no commit holds."
    whole = not missing and not common.get("git.dirty")
    return Standing("yes" if whole else "partly", how, "environment")
