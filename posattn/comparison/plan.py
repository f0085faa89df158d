"""The plan of a study: every arm's resolved recipe, every run, and control before the first step."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from posattn.comparison.arm_recipe import arm_recipe
from posattn.comparison.budgets.config import StepsMatch
from posattn.comparison.confounds import Confounds, Rules, find_confounds
from posattn.comparison.control import DeclaredFactors, Finding, check_arms
from posattn.comparison.differences import describe, differences, under, written_changes
from posattn.comparison.factorial import Design
from posattn.comparison.factorial.combinations import check_differ, explain_refusal, refusals
from posattn.comparison.probes import Probe
from posattn.comparison.probes.stored import predictions_to_json, probe_to_json
from posattn.comparison.study import STUDY_WORDS, Study
from posattn.errors import RecipeError
from posattn.recipe.card import make_contract
from posattn.recipe.difference import flatten
from posattn.recipe.scalars import plain
from posattn.recipe.schema import Recipe, recipe_data, recipe_digest
from posattn.recipe.writer import write_yaml
from posattn.training.durable import read_json, strict_json, write_bytes, write_json

SUITE_PLAN = "suite_plan.json"
"""What marks the folder of a study with tasks."""

EXPLAINED = ("compensations", "confounds", "design", "depth_controls")
"""Keys of plan.json that say why the arms are as they are; the arms' recipes decide."""


@dataclass(frozen=True)
class Arm:
    """One column of the comparison: what the study wrote, and the recipe that came of it."""

    name: str
    changes: Mapping[str, Any]
    recipe: Recipe


@dataclass(frozen=True)
class PlannedRun:
    """One arm with one seed; `folder` is relative to the study's."""

    arm: str
    seed: int
    recipe: Recipe

    @property
    def folder(self) -> str:
        """Return the run's folder, with slashes on every system."""
        return f"runs/{self.arm}/seed-{self.seed}"

    @property
    def key(self) -> str:
        """Return the run's name in messages."""
        return f"{self.arm}, seed {self.seed}"


@dataclass(frozen=True)
class StudyPlan:
    """A study with all that follows from it. Runs are ordered so that seeds get complete early.

    `written` is the study before its budgets were matched and its values tuned.
    """

    study: Study
    arms: tuple[Arm, ...]
    runs: tuple[PlannedRun, ...]
    control: tuple[Finding, ...]
    written: Study
    design: Design | None = None
    confounds: Confounds | None = None

    @property
    def threads(self) -> int:
        """Return the threads of each run."""
        return self.runs[0].recipe.train.threads or 1

    def with_control(self, findings: list[Finding]) -> "StudyPlan":
        """Return the plan with further findings behind those that it has."""
        return replace(self, control=(*self.control, *findings))

    def to_json(self) -> dict[str, Any]:
        """Return the plan as it stands in plan.json."""
        study = self.study
        return {
            "study": study.name,
            **{word: getattr(study, word) for word in STUDY_WORDS},
            "arms": [_arm_to_json(arm, study.asks()) for arm in self.arms],
            "seeds": list(study.seeds),
            "baseline": study.baseline,
            "primary": study.primary,
            **_commitments(study),
            "varies": list(study.varies),
            "declared": dict(study.declared),
            **({"compensations": dict(study.compensations)} if study.compensations else {}),
            "evaluations": [item.model_dump(mode="json") for item in study.evaluations],
            **self._probe_to_json(),
            "threads": self.threads,
            "runs": [{"arm": run.arm, "seed": run.seed, "folder": run.folder} for run in self.runs],
            "control": [finding.to_json() for finding in self.control],
            **choices(study),
            **self._design_to_json(),
        }

    def _probe_to_json(self) -> dict[str, Any]:
        """Return what the study's probe asks, if it has one."""
        probe = self.study.asks()
        return {} if probe is None else {"probe": probe_to_json(probe)}

    def _design_to_json(self) -> dict[str, Any]:
        """Return the design, what is mixed, and the controls of depth, where there are any."""
        found: dict[str, Any] = {}
        if self.design is not None:
            refused = refusals(self.study, self.design)
            found["design"] = self.design.to_json(refused)
        if self.confounds is not None and self.confounds.to_json():
            found["confounds"] = self.confounds.to_json()
        if self.study.depth_controls():
            found["depth_controls"] = self.study.depth_controls()
        return found


def choices(study: Study) -> dict[str, Any]:
    """Return how arms are matched, if not by steps, and tuned, if they are, as in plan.json."""
    found: dict[str, Any] = {}
    if study.match != StepsMatch():
        found["match"] = study.match.model_dump(mode="json")
    if study.tuning is not None:
        found["tuning"] = plain(study.tuning.model_dump(mode="json"))
    return found


def make_plan(study: Study, written: Study | None = None) -> StudyPlan:
    """Return the plan of a study; raise `ControlError` if arms differ in more than it declares.

    `written` is the study as its file has it, where its arms have been changed since. A study with
    tasks has one plan for each of its `task_studies()`, and is refused here.
    """
    if study.tasks:
        raise RecipeError(
            f"the study '{study.name}' has tasks ({', '.join(study.tasks)}): each is a study of its "
            "own. Run all of them with posattn compare or run_suite"
        )
    design = study.design()
    arms = tuple(_arm(study, design, name) for name in study.arms)
    recipes = {arm.name: recipe_data(arm.recipe) for arm in arms}
    factors = DeclaredFactors(study.varies, study.declared, study.compensations)
    if design is not None:
        check_differ(design, recipes)
    _check_declarations(factors, recipes)
    control = check_arms(recipes, study.baseline, factors)
    confounds = find_confounds(recipes, _rules(study, design))
    control.append(confounds.finding())
    runs = [
        PlannedRun(arm.name, seed, _with_seed(arm.recipe, seed))
        for seed in study.seeds
        for arm in arms
    ]
    planned = written or study
    return StudyPlan(study, arms, tuple(runs), tuple(control), planned, design, confounds)


def _rules(study: Study, design: Design | None) -> Rules:
    return Rules(
        baseline=study.baseline,
        varies=study.varies,
        compensations=study.compensations,
        confounded=study.confounded,
        design=design,
        factor_paths=study.factor_paths(),
    )


def write_plan(plan: StudyPlan, out: Path) -> None:
    """Write study.yaml, the study as it was written, and plan.json, which has what became of it."""
    study = plan.written.model_dump(mode="json")
    write_bytes(out / "study.yaml", write_yaml(study).encode())
    write_json(out / "plan.json", plan.to_json())


def check_same_study(plan: StudyPlan, out: Path) -> None:
    """Raise `RecipeError` with the differences if `out` holds the runs of another study.

    A plan of which no run was ever started (the text was missing, say) binds nobody.
    """
    path = out / "plan.json"
    if (out / SUITE_PLAN).is_file():
        raise RecipeError(
            f"{out} holds a study with tasks; choose another folder for '{plan.study.name}'"
        )
    if not any((out / "runs").glob("*/*")):
        return
    if not path.is_file():
        raise RecipeError(
            f"{out} holds runs but no plan.json, so it is not known what they are runs of; "
            "choose another folder"
        )
    there, now = _stored_there(path), _decisive(_stored(plan))
    found = differences(there, now)
    if found:
        raise RecipeError(
            f"{out} holds another study than '{plan.study.name}' is now:\n"
            f"{describe(found, 'the folder', 'the study')}\n"
            "Runs of two studies are never mixed: choose another folder with --out, delete this one, "
            "or take the change back to continue it"
        )


def _stored_there(path: Path) -> dict[str, Any]:
    try:
        return _decisive(read_json(path))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise RecipeError(
            f"{path} is damaged ({type(error).__name__}: {error}), so it is not known what the runs "
            f"in {path.parent} are runs of; choose another folder with --out"
        ) from error


def _stored(plan: StudyPlan) -> dict[str, Any]:
    """Return the plan as it would come back from its file."""
    content: dict[str, Any] = json.loads(strict_json(plan.to_json()))
    return content


def _decisive(plan: dict[str, Any]) -> dict[str, Any]:
    """Return what must be equal for the runs of two plans to belong together."""
    free = {*STUDY_WORDS, *EXPLAINED, "control", "arms", "runs", "probe", "expect"}
    kept = {key: value for key, value in plan.items() if key not in free}
    return {**kept, "arms": {arm["name"]: arm["recipe"] for arm in plan["arms"]}}


def _commitments(study: Study) -> dict[str, Any]:
    """Return what the study names before its first step, where it names anything."""
    content: dict[str, Any] = {}
    if study.primary_contrasts:
        content["primary_contrasts"] = [list(pair) for pair in study.primary_contrasts]
    if study.expect:
        content["expect"] = [item.model_dump(mode="json") for item in study.expect]
    return content


def _arm(study: Study, design: Design | None, name: str) -> Arm:
    """Return an arm; a combination that its recipe refuses is named with the way out."""
    changes = plain(written_changes(study.arms[name]))
    assert isinstance(changes, dict)
    try:
        recipe = _recipe(study, name)
    except RecipeError as error:
        if design is None or name not in design.cells:
            raise
        raise explain_refusal(error, name, design.cells[name]) from error
    return Arm(name, changes, recipe)


def _recipe(study: Study, name: str) -> Recipe:
    return arm_recipe(name, study.base, study.overrides("shared"), study.overrides("arms", name))


def _with_seed(recipe: Recipe, seed: int) -> Recipe:
    train = recipe.train.model_copy(update={"seed": seed, "data_seed": seed})
    return recipe.model_copy(update={"train": train})


def _check_declarations(factors: DeclaredFactors, recipes: Mapping[str, Any]) -> None:
    """Refuse a declared path that no arm has: it would allow nothing, or is misspelt."""
    known = {path for recipe in recipes.values() for path in flatten(recipe)}
    for prefix in factors.prefixes:
        if not any(under(path, [prefix]) for path in known):
            section = prefix.split(".")[0]
            inside = sorted({".".join(p.split(".")[:2]) for p in known if under(p, [section])})
            raise RecipeError(
                f"'{prefix}' is declared to vary, but no arm's recipe has it (in '{section}' there "
                f"are: {', '.join(inside)})"
            )


def _arm_to_json(arm: Arm, probe: Probe | None) -> dict[str, Any]:
    predictions = {} if probe is None else {"predictions": predictions_to_json(probe, arm.recipe)}
    return {
        "name": arm.name,
        "description": arm.recipe.description or None,
        "changes": dict(arm.changes),
        "recipe_digest": recipe_digest(arm.recipe),
        "recipe": recipe_data(arm.recipe),
        "contract": make_contract(arm.recipe),
        **predictions,
    }
