"""The plan of a suite: one study for each task, and the file that says which tasks there are."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from posattn.comparison.plan import SUITE_PLAN, StudyPlan, make_plan
from posattn.comparison.study import STUDY_WORDS, Study
from posattn.errors import RecipeError
from posattn.recipe.check import check_recipe
from posattn.recipe.writer import write_yaml
from posattn.training.durable import write_bytes, write_json


@dataclass(frozen=True)
class SuitePlan:
    """A study with tasks, and by task its ordinary study and the plan of that."""

    study: Study
    studies: dict[str, Study]
    plans: dict[str, StudyPlan]

    def to_json(self) -> dict[str, Any]:
        """Return the plan as it stands in suite_plan.json."""
        study = self.study
        return {
            "suite": study.name,
            **{word: getattr(study, word) for word in STUDY_WORDS},
            "baseline": study.baseline,
            "tasks": [
                {
                    "name": name,
                    "title": part.title,
                    "question": part.question,
                    "folder": f"tasks/{name}",
                    "left_out": dict(study.tasks[name].leave_out),
                }
                for name, part in self.studies.items()
            ],
        }


def make_suite_plan(study: Study) -> SuitePlan:
    """Return the plan of a study with tasks, every arm of every task checked.

    Raises `RecipeError` with the task and arm at fault, `ControlError` if arms differ in more than is
    declared.
    """
    studies = study.task_studies()
    if not studies:
        raise RecipeError(f"the study '{study.name}' has no tasks; run it with run_study")
    plans = {}
    for name, part in studies.items():
        try:
            plans[name] = make_plan(part)
            for arm in plans[name].arms:
                check_recipe(arm.recipe)
        except RecipeError as error:
            raise type(error)(f"task '{name}': {error}") from error
    return SuitePlan(study, studies, plans)


def write_suite_plan(plan: SuitePlan, out: Path) -> None:
    """Write study.yaml and suite_plan.json; raise `RecipeError` if `out` is an ordinary study's."""
    if (out / "plan.json").is_file():
        raise RecipeError(
            f"{out} holds a study without tasks; choose another folder for '{plan.study.name}'"
        )
    content = plan.study.model_dump(mode="json")
    write_bytes(out / "study.yaml", write_yaml(content).encode())
    write_json(out / SUITE_PLAN, plan.to_json())
