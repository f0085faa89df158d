"""Factors become arms: the document of a study with every combination written out."""

from typing import Any

from posattn.comparison.differences import under, written_changes
from posattn.comparison.factorial.combinations import combination
from posattn.comparison.factorial.depth_control import add_depth_controls
from posattn.comparison.factorial.design import Design, matches
from posattn.comparison.factorial.keys import FactorialKeys, level_text
from posattn.errors import RecipeError
from posattn.recipe.explain import validate_document
from posattn.recipe.merge import merge
from posattn.recipe.reader import Document

KEYS = tuple(FactorialKeys.model_fields)


def expand(document: Document) -> Document:
    """Return the study with its combinations and controls of depth as arms.

    An arm that the study gives under the name of a combination adds to it. The paths that levels
    change are added to `varies`, and a baseline given by levels becomes the arm's name. What is
    expanded already stays as it is. Controls of depth wait for the task in a study with tasks, which
    may change depths. Raises `RecipeError` with file and line.
    """
    given = {key: document.data[key] for key in KEYS if key in document.data}
    keys = validate_document(FactorialKeys, Document(given, document.origins), what="study")
    design = keys.design()
    if design is not None:
        document = _with_arms(document, design)
        document = _with_varies(document)
    document = _with_baseline(document, design)
    return document if document.data.get("tasks") else add_depth_controls(document)


def _with_arms(document: Document, design: Design) -> Document:
    written = document.data.get("arms", {})
    if not isinstance(written, dict):
        return document
    arms: dict[str, Any] = {}
    origins = {path: place for path, place in document.origins.items() if path[:1] != ("arms",)}
    for name, levels in design.cells.items():
        arm = combination(document, levels)
        if isinstance(written.get(name), dict):
            arm = merge(arm, document.part(("arms", name)))
        arms[name] = arm.data
        origins.update({("arms", name, *path): place for path, place in arm.origins.items()})
    controls = {name: changes for name, changes in written.items() if name not in arms}
    for path, place in document.origins.items():
        if path[:1] == ("arms",) and (len(path) == 1 or path[1] in controls):
            origins[path] = place
    return Document({**document.data, "arms": {**arms, **controls}}, origins)


def _with_varies(document: Document) -> Document:
    """Add the paths in which levels differ to `varies`; options come and go with their name."""
    given = document.data.get("varies", [])
    if not isinstance(given, list) or not all(isinstance(path, str) for path in given):
        return document
    declared = document.data.get("declared", {})
    found = [*given]
    for levels in document.data["factors"].values():
        changed = {path for changes in levels.values() for path in written_changes(changes)}
        for path in sorted(changed - {"description"}):
            whole = path.removesuffix(".name")
            if not under(whole, [*found, *declared]):
                found = [kept for kept in found if kept in given or not under(kept, [whole])]
                found.append(whole)
    origins = {("varies",): document.origin(("factors",)), **document.origins}
    return Document({**document.data, "varies": found}, origins)


def _with_baseline(document: Document, design: Design | None) -> Document:
    wanted = document.data.get("baseline")
    if not isinstance(wanted, dict):
        return document
    origin = document.origin(("baseline",))
    if design is None:
        raise RecipeError(f"{origin}: baseline: names levels, but the study has no factors")
    levels = {factor: level_text(level) for factor, level in wanted.items()}
    for factor, level in levels.items():
        known = design.factors.get(factor, ())
        if level not in known:
            listed = "; ".join(f"{name}: {', '.join(of)}" for name, of in design.factors.items())
            raise RecipeError(
                f"{document.origin(('baseline', factor))}: baseline: there is no level '{level}' of "
                f"'{factor}' (levels by factor: {listed})"
            )
    asked = {factor: str(level) for factor, level in levels.items()}
    found = [name for name, cell in design.cells.items() if matches(cell, asked)]
    if len(found) != 1:
        which = f"{len(found)} combinations ({', '.join(found)})" if found else "no combination"
        raise RecipeError(
            f"{origin}: baseline: these levels are those of {which}; name the levels of one"
        )
    origins = {path: place for path, place in document.origins.items() if path[:1] != ("baseline",)}
    return Document({**document.data, "baseline": found[0]}, {**origins, ("baseline",): origin})
