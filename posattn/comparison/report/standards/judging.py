"""Standards of how results are judged and shown, and of what is said of their limits."""

from posattn.comparison import wording
from posattn.comparison.report.standards.finding import Standing, by_rules, finished, rule, share
from posattn.comparison.results_schema import Results

ALONE = Standing("not applicable", "There is one arm: nothing is compared.", "scores")


def paired_differences(results: Results) -> Standing:
    """Differences come with interval, n, test and the smallest visible effect."""
    if len(results.arms) == 1:
        return ALONE
    contrasts = results.family("baseline")
    with_interval = [c for c in contrasts if c.difference.low is not None]
    if not with_interval:
        how = "No contrast has an interval: that needs two finished seeds in both arms."
        return Standing("no", how, "differences")
    how = (
        f"Paired over seeds, with 95 % interval, n, t test, exact p and smallest visible difference "
        f"for {share(len(with_interval), len(contrasts), 'contrast')} with the baseline; no ranking."
    )
    whole = len(with_interval) == len(contrasts)
    return Standing("yes" if whole else "partly", how, "differences")


def multiplicity(results: Results) -> Standing:
    """Several contrasts are corrected for, or one is named beforehand."""
    if len(results.arms) == 1:
        return ALONE
    verdicts = [c.judgement.verdict for c in results.family("baseline") if c.judgement]
    judged = [verdict for verdict in verdicts if verdict != "not tested"]
    if not judged:
        return Standing("no", "No contrast could be tested.", "differences")
    how = (
        f"Holm's correction over {wording.plural(len(verdicts), 'contrast')} with the baseline, the "
        "other pairs as a second family."
    )
    return Standing("yes", how, "differences")


def tasks(results: Results) -> Standing:
    """Several tasks are aggregated without means of ranks."""
    how = (
        "One study is one task. A study with several (`tasks:`) aggregates by interquartile mean with "
        "a stratified bootstrap, with its table per task."
    )
    return Standing("not applicable", how, "scores")


def curves(results: Results) -> Standing:
    """Learning curves have bands, by tokens and by time."""
    drawn = [arm for arm in results.arms if len(arm.curve) > 1]
    if not drawn:
        how = "No run has evaluations at two steps or more: see train.evaluate_every."
        return Standing("no", how, "scores")
    how = f"With bands, at equal tokens, for {share(len(drawn), len(results.arms), 'arm')}"
    if results.speed is None:
        return Standing("partly", f"{how}; not by time, because speed was not measured.", "curves")
    whole = len(drawn) == len(results.arms)
    how += ", and at equal seconds by the interleaved timing."
    return Standing("yes" if whole else "partly", how, "curves")


def lengths_and_positions(results: Results) -> Standing:
    """Loss is shown by length and by position, refusals marked."""
    lengths = sorted({p.length for arm in results.arms for p in arm.length})
    positions = any(arm.position for arm in results.arms)
    refused = sum(bool(p.refused) for arm in results.arms for p in arm.length)
    if not lengths and not positions:
        how = "Not evaluated, or not yet: the evaluations 'length' and 'position' do."
        return Standing("no", how, "scores")
    parts = []
    if lengths:
        shown = wording.listed([str(length) for length in lengths])
        marked = f"; {wording.plural(refused, 'refusal')} marked with the reason" if refused else ""
        parts.append(f"by length ({shown} tokens{marked})")
    if positions:
        parts.append("by position")
    missing = [name for name, there in (("length", lengths), ("position", positions)) if not there]
    how = f"Loss {wording.listed(parts)}."
    how += f" Not evaluated by {missing[0]}." if missing else ""
    return Standing("partly" if missing else "yes", how, "length" if lengths else "position")


def diagnostics(results: Results) -> Standing:
    """Checks of what the maths says were run on the trained arms."""
    checked = [arm for arm in results.arms if arm.inside is not None and arm.inside.checks]
    if not checked:
        how = (
            "Not evaluated: the evaluations 'shift', 'permutation', 'padding' and "
            "'attention_distance' look inside every trained arm."
        )
        return Standing("no", how, "scores")
    checks = [check for arm in checked if arm.inside is not None for check in arm.inside.checks]
    names = wording.listed(list(dict.fromkeys(check.evaluation for check in checks)))
    broken = sum(check.broken for check in checks)
    how = (
        f"{names} on {share(len(checked), len(results.arms), 'arm')}; "
        f"{broken or 'none'} of {wording.plural(len(checks), 'check')} broken."
    )
    return Standing("yes" if len(checked) == len(results.arms) else "partly", how, "inside")


def self_test(results: Results) -> Standing:
    """Every arm is asked what its parts promise before it is trained."""
    claim = "Untrained, each weight moved; the file self_test.json has every check"
    return by_rules([rule(results, "parts promise")], claim)


def fidelity(results: Results) -> Standing:
    """Each arm's variant is stated."""
    stated = [arm for arm in results.arms if arm.contract]
    if not stated:
        return Standing("no", "plan.json has no architecture contract.", "arms")
    how = f"An architecture contract names the variant of {share(len(stated), len(results.arms), 'arm')}."
    return Standing("yes" if len(stated) == len(results.arms) else "partly", how, "arms")


def known_number(results: Results) -> Standing:
    """The baseline reproduces a known number."""
    found = [r for r in results.control if "reproduces" in r.rule and "known for" in r.rule]
    if not found:
        how = "No arm has a known number to reproduce: a study names one under `expect`."
        return Standing("no", how, "control")
    return by_rules([rule(results, found[0].rule), *found[1:]], "Checked before comparing")


def limits(results: Results) -> Standing:
    """Limits are said automatically."""
    if not finished(results):
        return Standing("partly", "No run is finished: that is the limit.", "limits")
    number = wording.plural(len(results.limits), "limit")
    how = f"{number} said from the numbers of this study, the weightiest first."
    return Standing("yes", how, "limits")
