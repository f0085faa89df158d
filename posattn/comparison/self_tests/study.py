"""self_test.json: the self-test of every arm of a study, each architecture once, before the runs."""

from pathlib import Path
from typing import Any

from posattn.comparison import wording
from posattn.comparison.control import Finding
from posattn.comparison.plan import StudyPlan
from posattn.comparison.pool import JobEvent, WorkerPool
from posattn.comparison.self_tests.arm import SelfTestTask, self_test
from posattn.comparison.worker import Job
from posattn.errors import ControlError, RunFailed
from posattn.recipe.schema import Recipe, data_digest, recipe_data
from posattn.training.durable import read_json, write_json

FILE = "self_test.json"
RULE = "every arm does what its parts promise before its first step"


def check_arms_keep_promises(plan: StudyPlan, out: Path, pool: WorkerPool) -> Finding:
    """Return the finding on all arms; one that has kept its promises in `out` is not asked again.

    Raises `ControlError` with every promise that an arm breaks, `RunFailed` if an arm cannot be asked.
    """
    arms = {arm.name: _architecture(arm.recipe) for arm in plan.arms}
    tests = _stored(out / FILE)
    first: dict[str, str] = {}
    for arm, digest in arms.items():
        first.setdefault(digest, arm)
    missing = {digest: arm for digest, arm in first.items() if digest not in tests}
    if missing:
        recipes = {arm.name: arm.recipe for arm in plan.arms}
        tests |= _asked({digest: recipes[arm] for digest, arm in missing.items()}, missing, pool)
        tests = {digest: tests[digest] for digest in first if digest in tests}
        write_json(out / FILE, {"arms": arms, "tests": tests})
    broken = {arm: tests[digest]["broken"] for arm, digest in arms.items()}
    if any(broken.values()):
        raise ControlError(_refusal(broken, out / FILE))
    return Finding(RULE, True, _detail(list(tests.values()), len(arms)))


def _architecture(recipe: Recipe) -> str:
    """Return a digest of what decides the model and how it is computed."""
    data = recipe_data(recipe)
    train = {key: data["train"].get(key) for key in ("device", "precision", "threads")}
    return data_digest(
        {key: data[key] for key in ("encoder", "decoder", "head")} | {"train": train}
    )


def _stored(path: Path) -> dict[str, Any]:
    """Return the tests that held; a damaged file is made anew, as it costs seconds."""
    if not path.is_file():
        return {}
    try:
        content = read_json(path)
    except ValueError:
        return {}
    tests = content.get("tests") if isinstance(content, dict) else None
    if not isinstance(tests, dict):
        return {}
    return {digest: test for digest, test in tests.items() if not test["broken"]}


def _asked(
    recipes: dict[str, Recipe], names: dict[str, str], pool: WorkerPool
) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}

    def note(event: JobEvent) -> None:
        if event.kind == "returned":
            found[keys[event.key]] = event.payload
        elif event.kind in ("raised", "killed"):
            raise RunFailed(f"the {event.key} failed: {event.payload}")

    keys = {f"self-test of {names[digest]}": digest for digest in recipes}
    pool.run([Job(key, self_test, SelfTestTask(recipes[d])) for key, d in keys.items()], note)
    return found


def _detail(tests: list[dict[str, Any]], arms: int) -> str:
    checks = [check for test in tests for check in test["checks"]]
    asked = wording.listed(list(dict.fromkeys(check["of"] for check in checks)))
    lengths = sorted({length for test in tests for length in test["gradient_lengths"]})
    shown = wording.listed([str(length) for length in lengths])
    return (
        f"{wording.plural(len(checks), 'check')} of {asked} on {wording.plural(arms, 'arm')}; "
        f"gradients finite in rows of {shown} tokens"
    )


def _refusal(broken: dict[str, list[str]], path: Path) -> str:
    listed = "\n".join(f"  {arm}: {line}" for arm, lines in broken.items() for line in lines)
    return (
        f"before the first step, arms do not do what their parts promise:\n{listed}\n"
        "A study of them would measure a fault. Mend the mechanism, or what its traits() state: "
        f"posattn check-mechanism NAME says more. All checks are in {path}"
    )
