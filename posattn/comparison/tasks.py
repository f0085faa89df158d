"""`Task`: what one task of a study with several changes, and the ordinary study that comes of it."""

from typing import TYPE_CHECKING, Any

from pydantic import Field

from posattn.comparison.commitments import Expectation, Pair
from posattn.comparison.evaluations import EvaluationConfig, evaluations
from posattn.comparison.probes import OptionalProbe
from posattn.config import FrozenConfig, Many, Text, open_field
from posattn.errors import RecipeError
from posattn.recipe.merge import merge
from posattn.recipe.reader import Document, KeyPath, Origin

if TYPE_CHECKING:
    Evaluations = tuple[EvaluationConfig, ...]
else:
    Evaluations = Many[open_field(evaluations, EvaluationConfig)]

REPLACED = ("question", "evaluations", "primary")
"""What a task says instead of the study, where it says it."""

COMMITTED = ("primary_contrasts", "expect")
"""What a task may commit to by itself; it replaces what the study says."""


class Task(FrozenConfig):
    """One task of a study: the same arms and seeds on other data, with other scores.

    `shared` and `arms` merge over those of the study; `leave_out` names arms that this task does
    without, each with the reason. What is empty is as the study has it.
    """

    title: Text = ""
    question: Text = ""
    probe: OptionalProbe = Field(
        None, description="what the task asks; brings question, evaluations and primary score"
    )
    shared: dict[str, Any] = Field(
        default_factory=dict, description="overrides for all arms, over those of the study"
    )
    arms: dict[str, dict[str, Any]] = Field(
        default_factory=dict, description="overrides of single arms in this task, or further arms"
    )
    leave_out: dict[str, Text] = Field(
        default_factory=dict, description="arms that this task does without, each with the reason"
    )
    evaluations: Evaluations = ()
    primary: Text = ""
    primary_contrasts: Many[Pair] = ()
    expect: Many[Expectation] = ()


def task_document(study: Document, name: str) -> Document:
    """Return the task `name` of a whole study as the document of an ordinary study.

    Its parts know the lines they come from. Raises `RecipeError` for an arm that cannot be left out.
    """
    place = ("tasks", name)
    task = study.data["tasks"][name]
    own = {key: task[key] for key in ("shared", "arms") if task[key]}
    whole = {key: value for key, value in study.data.items() if key != "tasks"}
    for key in REPLACED:
        if task[key] or task["probe"]:
            del whole[key]
        if task[key]:
            own[key] = task[key]
    own |= {key: task[key] for key in COMMITTED if task[key]}
    if task["probe"]:
        whole["probe"] = task["probe"]
    origins = {path: origin for path, origin in study.origins.items() if path[:1] != ("tasks",)}
    merged = merge(Document(whole, origins), Document(own, _below(study.origins, place)))
    pairs, lost = merged.data["primary_contrasts"], []
    if not task["primary_contrasts"]:  # those of the study, of which a task may lack an arm
        lost = [pair for pair in pairs if {*task["leave_out"]} & {*pair}]
        pairs = [pair for pair in pairs if pair not in lost]
    data = {
        **merged.data,
        "primary_contrasts": pairs,
        "name": name,
        "title": task["title"] or f"{whole['title'] or whole['name']}: {name}",
        "arms": _without(merged.data["arms"], study, place, whole["baseline"]),
        "description": " ".join(
            filter(None, (whole["description"], _told(task["leave_out"], lost)))
        ),
    }
    return Document(
        data, {**merged.origins, (): study.origin(place), ("name",): study.origin(place)}
    )


def _without(
    arms: dict[str, Any], study: Document, place: KeyPath, baseline: str
) -> dict[str, Any]:
    """Return the arms that are left."""
    left_out = study.data["tasks"][place[1]]["leave_out"]
    for arm, reason in left_out.items():
        where = study.origin((*place, "leave_out", arm))
        if arm not in arms:
            known = ", ".join(arms)
            raise RecipeError(f"{where}: leave_out: '{arm}' is no arm (arms: {known})")
        if arm == baseline:
            raise RecipeError(
                f"{where}: leave_out: '{arm}' is the baseline, which every task needs; leave out "
                "others, or choose another baseline"
            )
        if not reason.strip():
            raise RecipeError(
                f"{where}: leave_out: give the reason, such as {arm}: why it is left out"
            )
    return {arm: changes for arm, changes in arms.items() if arm not in left_out}


def _told(left_out: dict[str, str], lost: list[tuple[str, str]]) -> str:
    if not left_out:
        return ""
    listed = "; ".join(f"{arm} ({reason})" for arm, reason in left_out.items())
    told = f"Left out of this task: {listed}."
    if lost:
        contrasts = ", ".join(f"{first} - {second}" for first, second in lost)
        told += f" With them goes what the study named beforehand: {contrasts}."
    return told


def _below(origins: dict[KeyPath, Origin], place: KeyPath) -> dict[KeyPath, Origin]:
    size = len(place)
    return {path[size:]: origin for path, origin in origins.items() if path[:size] == place}
