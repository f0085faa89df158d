"""`Study`: a base recipe, arms, seeds and evaluations, as a study file states them."""

from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, PrivateAttr, TypeAdapter, ValidationError, model_validator

from posattn.comparison.budgets.config import AnyMatch, StepsMatch
from posattn.comparison.budgets.fairness import check_match, check_tuning
from posattn.comparison.commitments import Expectation, Pair, check_commitments
from posattn.comparison.differences import under, written_changes
from posattn.comparison.factorial import FactorialKeys, expand
from posattn.comparison.factorial.depth_control import DEPTH_CONTROL
from posattn.comparison.metrics import metrics
from posattn.comparison.probes import AnyProbe, OptionalProbe, Probe, ProbeConfig, make_probe
from posattn.comparison.tasks import Evaluations, Task, task_document
from posattn.comparison.tuning.config import TuningConfig
from posattn.config import Many, Text
from posattn.errors import RecipeError
from posattn.recipe.explain import validate_document
from posattn.recipe.merge import Override, merge, override, read_overrides
from posattn.recipe.reader import Document, KeyPath, Origin, describe_kind, read_file
from posattn.recipe.resolve import Overrides, absolute_paths
from posattn.recipe.shipped import find_recipe, is_study, wrong_kind
from posattn.training.run_folder import check_run_name

RECIPE_SECTIONS = ("encoder", "decoder", "head", "objective", "data", "train")
TASK_PARTS = ("shared", "arms")
STUDY_WORDS = ("title", "question", "description", "notes")

Seed = Annotated[int, Field(ge=0)]
_PROBE: TypeAdapter[ProbeConfig] = TypeAdapter(AnyProbe)


class Study(FactorialKeys):
    """What is compared, on what, how often, and by which score.

    `shared` are overrides of the base recipe for all arms; `varies` are the dotted paths that the
    study is about; `declared` are other paths in which arms differ, with the reason for each.
    `compensations` are paths in which arms differ so that they become comparable. With `factors`, `arms` has
    every combination that is run, and any other arm beside them.
    """

    name: Text = Field(description="a folder name; by default the file's")
    title: Text = ""
    question: Text = Field("", description="what the study is to find out")
    description: Text = ""
    notes: Text = ""
    base: Text = Field(description="a recipe: a path relative to this file, or a shipped name")
    shared: dict[str, Any] = Field(
        default_factory=dict, description="overrides of the base recipe that all arms share"
    )
    arms: dict[str, dict[str, Any]] = Field(
        min_length=1, description="by name, what each arm overrides: dotted paths or sections"
    )
    varies: Many[Text] = Field(description="the factors: dotted paths in which arms may differ")
    declared: dict[str, Text] = Field(
        default_factory=dict,
        description="other dotted paths in which arms may differ, each with the reason",
    )
    compensations: dict[str, Text] = Field(
        default_factory=dict,
        description="dotted paths in which arms differ to be comparable (tuned rates, matched sizes), "
        "each with the reason; no confounds",
    )
    confounded: Text = Field(
        "",
        description="why arms mix architecture, objective, data or training; the report puts it first",
    )
    baseline: Text = Field(description="the arm that the others are compared with")
    seeds: Many[Seed] = Field(min_length=1, description="one run of every arm for each")
    probe: OptionalProbe = Field(
        None,
        description="objective, data, training and scores of a probe, under what is given here",
    )
    primary: Text = Field("validation_loss", description="the score that verdicts are about")
    primary_contrasts: Many[Pair] = Field(
        (),
        description="contrasts named beforehand, [first, second]: they alone form the judged family",
    )
    expect: Many[Expectation] = Field(
        (), description="numbers that arms should reproduce; checked before anything is compared"
    )
    evaluations: Evaluations = ()
    tasks: dict[str, Task] = Field(
        default_factory=dict, description="by name; each makes an ordinary study of its own"
    )
    match: AnyMatch = Field(StepsMatch(), description="the budget that all arms get")
    tuning: TuningConfig | None = Field(
        None, description="a grid of values that is tried in every arm before the runs"
    )
    _origins: dict[KeyPath, Origin] = PrivateAttr(default_factory=dict)

    def overrides(self, *place: str) -> Document:
        """Return `shared`, or `arms` and an arm's name, as a document that knows its lines.

        `shared` stands over what the study's probe sets.
        """
        data: Any = getattr(self, place[0])
        for key in place[1:]:
            data = {part: value for part, value in data[key].items() if part != DEPTH_CONTROL}
        origins = _below(self._origins, place)
        found = Document(data, {(): Origin(f"the study {self.name}"), **origins})
        if place == ("shared",) and self.probe is not None:
            origin = Origin(f"the probe {self.probe.name}")
            return merge(Document(make_probe(self.probe).overrides(), {(): origin}), found)
        return found

    def asks(self) -> Probe | None:
        """Return the study's probe, if it has one."""
        return None if self.probe is None else make_probe(self.probe)

    @model_validator(mode="before")
    @classmethod
    def _scores_come_with_the_probe(cls, data: Any) -> Any:
        """Fill in what a study with a probe leaves out: evaluations, primary score, question."""
        if not isinstance(data, dict) or data.get("probe") is None:
            return data
        try:
            probe = make_probe(_PROBE.validate_python(data["probe"]))
        except ValidationError:
            return data  # the field itself says what is wrong
        filled = {
            "evaluations": list(probe.evaluations()),
            "primary": probe.primary(),
            "question": probe.question,
        }
        return {**data, **{key: value for key, value in filled.items() if not data.get(key)}}

    def factor_paths(self) -> dict[str, list[str]]:
        """Return the dotted paths that the levels of each factor change."""
        return {
            name: sorted({p for c in levels.values() for p in written_changes(c)} - {"description"})
            for name, levels in self.factors.items()
        }

    def depth_controls(self) -> dict[str, str]:
        """Return, by the name of each control of depth, the arm whose depth it has."""
        return {arm: c[DEPTH_CONTROL] for arm, c in self.arms.items() if DEPTH_CONTROL in c}

    def task_studies(self) -> dict[str, "Study"]:
        """Return one ordinary study for each task; raise `RecipeError` with file and line.

        Empty for a study without tasks.
        """
        document = Document(self.model_dump(), self._origins)
        found = {}
        for name in self.tasks:
            part = expand(task_document(document, name))
            try:
                found[name] = validate_document(Study, part, what="task")
            except RecipeError as error:
                raise type(error)(f"{error} (in the task '{name}')") from error
            found[name]._origins.update(part.origins)
        return found

    @model_validator(mode="after")
    def _names_are_portable(self) -> "Study":
        for name in (self.name, *self.arms, *self.tasks):
            try:
                check_run_name(name)
            except RecipeError as error:
                raise ValueError(str(error)) from error
        for kind, names in (("arms", self.arms), ("tasks", self.tasks)):
            folded: dict[str, str] = {}
            for name in names:
                other = folded.setdefault(name.lower(), name)
                if other != name:
                    raise ValueError(
                        f"the {kind} '{other}' and '{name}' differ in capitals only; some systems "
                        "would give them one folder. Rename one"
                    )
        return self

    @model_validator(mode="after")
    def _parts_fit(self) -> "Study":
        if self.baseline not in self.arms:
            known = ", ".join(self.arms)
            raise ValueError(f"the baseline '{self.baseline}' is no arm (arms: {known})")
        repeated = sorted({seed for seed in self.seeds if self.seeds.count(seed) > 1})
        if repeated:
            raise ValueError(
                f"seeds must be distinct; given more than once: {', '.join(map(str, repeated))}"
            )
        if not self.tasks:
            self._check_scores()
        return self

    def _check_scores(self) -> None:
        try:
            metric = metrics.get(self.primary)
        except RecipeError as error:
            raise ValueError(f"primary: {error}") from error
        names = [evaluation.name for evaluation in self.evaluations]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"each evaluation is given once; more often: {', '.join(twice)}")
        if metric.section not in names:
            raise ValueError(
                f"the primary score '{self.primary}' comes from the evaluation "
                f"'{metric.section}', which this study does not run (it runs: {', '.join(names) or 'none'})"
            )

    @model_validator(mode="after")
    def _commitments_fit(self) -> "Study":
        ran = None if self.tasks else [evaluation.name for evaluation in self.evaluations]
        check_commitments(self.primary_contrasts, self.expect, self.arms, ran)
        return self

    @model_validator(mode="after")
    def _declarations_are_paths(self) -> "Study":
        tried = self.tuning.grid if self.tuning else ()
        for path in (*self.varies, *self.declared, *self.compensations, *tried):
            if path.split(".")[0] not in RECIPE_SECTIONS or not all(path.split(".")):
                raise ValueError(
                    f"'{path}' is no dotted path into a recipe, such as encoder.mechanism "
                    f"(sections: {', '.join(RECIPE_SECTIONS)})"
                )
        for path in ("train.seed", "train.data_seed"):
            for arm, changes in self.arms.items():
                if _leads_to(changes, path.split(".")):
                    raise ValueError(
                        f"the arm '{arm}' sets {path}; give 'seeds', which are the same in all arms"
                    )
        twice = [path for path in self.declared if under(path, self.varies)]
        if twice:
            raise ValueError(f"both in 'varies' and 'declared': {', '.join(twice)}; keep one")
        twice = [path for path in self.compensations if under(path, self.declared)]
        if twice:
            raise ValueError(f"both declared and a compensation: {', '.join(twice)}; keep one")
        return self

    @model_validator(mode="after")
    def _budgets_are_fair(self) -> "Study":
        differing = (*self.varies, *self.declared)
        names = [evaluation.name for evaluation in self.evaluations]
        check_match(self.match, differing, None if self.tasks else names)
        if self.tuning is not None:
            check_tuning(self.tuning, self.match, self.seeds, differing)
            for path in self.tuning.grid:
                setting = [arm for arm, own in self.arms.items() if _leads_to(own, path.split("."))]
                if setting:
                    raise ValueError(
                        f"tuning: {path} is tried in every arm, and {', '.join(setting)} sets it; "
                        "leave it out there"
                    )
        return self


def load_study(reference: str | Path, overrides: Overrides = ()) -> Study:
    """Return the study `reference`, a path or a shipped name, with `a.b=c` overrides applied.

    An override of a recipe's path (`train.steps=100`) holds for all arms that do not set it
    themselves. Raises `RecipeError` with file and line.
    """
    path = find_recipe(reference, kind="study")
    written = read_file(path)
    if not is_study(written.data) and {"extends", *RECIPE_SECTIONS} & written.data.keys():
        raise RecipeError(wrong_kind(str(path), "recipe", str(path)))
    document = _expanded(written)
    for item in read_overrides(overrides):
        for placed in _for_all_arms(item, document.data.get("tasks")):
            document = merge(document, _expanded(placed.document()))
    document = expand(_with_defaults(document, path))
    study = validate_document(Study, document, what="study")
    study._origins.update(document.origins)
    study.task_studies()
    return study


def _for_all_arms(item: Override, tasks: Any) -> list[Override]:
    """Return the override where it belongs: one of a recipe also in tasks that share overrides."""
    if item.path[0] not in RECIPE_SECTIONS:
        return [item]
    places: list[tuple[str, ...]] = [("shared",)]
    for name, task in tasks.items() if isinstance(tasks, dict) else ():
        if isinstance(task, dict) and "shared" in task:
            places.append(("tasks", name, "shared"))
    return [Override((*place, *item.path), item.value, item.origin) for place in places]


def _with_defaults(document: Document, path: Path) -> Document:
    """Add the name from the file, and say where the base recipe is."""
    data = {"name": path.stem, **document.data}
    base = data.get("base")
    if isinstance(base, str):
        try:
            data["base"] = str(find_recipe(base, folder=path.parent))
        except RecipeError as error:
            raise type(error)(f"{document.origin(('base',))}: base: {error}") from error
    for key in ("shared", "arms", "factors", "tasks"):
        if key in data:
            data[key] = _resolved(data[key], key, path.parent)
    return Document(data, {("name",): Origin(str(path)), **document.origins})


def _resolved(value: Any, key: str, folder: Path) -> Any:
    """Return overrides with relative data paths joined to the study's folder."""
    if not isinstance(value, dict):
        return value
    if key == "shared":
        return absolute_paths(Document(value), folder).data
    if key == "task":
        parts = {part: _resolved(value[part], part, folder) for part in TASK_PARTS if part in value}
        return {**value, **parts}
    below = {"tasks": "task", "factors": "arms"}.get(key, "shared")
    return {name: _resolved(changes, below, folder) for name, changes in value.items()}


def _expanded(document: Document) -> Document:
    """Return the study with dotted overrides (`encoder.mechanism: ...`) as nested mappings."""
    data, origins = _without_nothing(document.data), dict(document.origins)
    for place in _places_of_overrides(data):
        holder = data
        for key in place[:-1]:
            holder = holder[key]
        nested = _nest(Document(holder[place[-1]], _below(document.origins, place)))
        holder[place[-1]] = nested.data
        origins = {path: origin for path, origin in origins.items() if not _inside(path, place)}
        origins.update({(*place, *path): origin for path, origin in nested.origins.items()})
    return Document(data, origins)


def _without_nothing(data: dict[str, Any]) -> dict[str, Any]:
    """Return a copy in which an arm or level without overrides is an empty mapping."""
    found = dict(data)
    if isinstance(data.get("arms"), dict):
        found["arms"] = _filled(data["arms"])
    if isinstance(data.get("factors"), dict):
        found["factors"] = {
            name: _filled(levels) if isinstance(levels, dict) else levels
            for name, levels in data["factors"].items()
        }
    if isinstance(data.get("tasks"), dict):
        found["tasks"] = {
            name: _without_nothing(task) if isinstance(task, dict) else task
            for name, task in _filled(data["tasks"]).items()
        }
    return found


def _filled(changes: dict[str, Any]) -> dict[str, Any]:
    return {name: {} if value is None else value for name, value in changes.items()}


def _places_of_overrides(data: dict[str, Any]) -> list[tuple[str, ...]]:
    """Return where overrides of a recipe stand: shared, in arms, in levels of factors, in tasks."""
    places: list[tuple[str, ...]] = [("shared",)] if isinstance(data.get("shared"), dict) else []
    parents: list[tuple[tuple[str, ...], Any]] = [(("arms",), data.get("arms"))]
    if isinstance(data.get("factors"), dict):
        parents += [(("factors", name), levels) for name, levels in data["factors"].items()]
    for parent, children in parents:
        if isinstance(children, dict):
            places += [(*parent, name) for name, v in children.items() if isinstance(v, dict)]
    for name, task in data["tasks"].items() if isinstance(data.get("tasks"), dict) else ():
        if isinstance(task, dict):
            places += [("tasks", name, *place) for place in _places_of_overrides(task)]
    return places


def _nest(overrides: Document) -> Document:
    """Return the overrides of one arm as one nested document, in the order they are written."""
    nested = Document({}, {(): overrides.origin(())})
    for dotted, value in overrides.data.items():
        origin = overrides.origin((dotted,))
        item = override(dotted, value, origin)
        if item.path[0] not in (*RECIPE_SECTIONS, "description", DEPTH_CONTROL):
            raise RecipeError(
                f"{origin}: '{dotted}' is no part of a recipe; an arm overrides dotted paths such "
                f"as encoder.mechanism (sections: {', '.join(RECIPE_SECTIONS)})"
            )
        if isinstance(value, str | int | float) and dotted in RECIPE_SECTIONS:
            raise RecipeError(
                f"{origin}: '{dotted}' is a section of a recipe, a mapping of keys, not "
                f"{describe_kind(value)}"
            )
        single = item.document()
        origins = dict(single.origins)
        for path, place in _below(overrides.origins, (dotted,)).items():
            origins[(*item.path, *path)] = place
        nested = merge(nested, Document(single.data, origins))
    return nested


def _below(origins: dict[KeyPath, Origin], place: KeyPath) -> dict[KeyPath, Origin]:
    size = len(place)
    return {path[size:]: origin for path, origin in origins.items() if path[:size] == place}


def _inside(path: KeyPath, place: KeyPath) -> bool:
    return path[: len(place)] == place


def _leads_to(data: Any, path: list[str]) -> bool:
    if not path:
        return True
    return isinstance(data, dict) and path[0] in data and _leads_to(data[path[0]], path[1:])
