"""Finding recipes: by path, or by the name of one that ships with posattn."""

import difflib
from pathlib import Path
from typing import Any, Literal

import posattn
from posattn.errors import RecipeError, UnknownName

Kind = Literal["recipe", "study"]
_SUFFIXES = (".yaml", ".yml")
STUDY_KEYS = {"arms", "factors", "tasks"}
"""A file with one of these is a study."""


def shipped_recipes() -> Path:
    """Return the folder of the recipes that ship with posattn: in the wheel, or in a checkout."""
    package = Path(posattn.__file__).resolve().parent
    for folder in (package / "_recipes", package.parent / "recipes"):
        if folder.is_dir():
            return folder
    raise RecipeError(
        f"the recipes that ship with posattn are missing (neither {package / '_recipes'} nor "
        f"{package.parent / 'recipes'} exists); install posattn again"
    )


def shipped_names(kind: Kind) -> dict[str, Path]:
    """Return the shipped recipes, or the studies, by name: `quick/rope`, or for a study its stem."""
    root = shipped_recipes()
    names = {}
    for path in sorted(root.rglob("*.yaml")):
        is_study = path.relative_to(root).parts[0] == "studies"
        if is_study == (kind == "study"):
            below = path.relative_to(root / "studies" if is_study else root)
            names[below.with_suffix("").as_posix()] = path
    return names


def find_recipe(
    reference: str | Path, *, folder: Path | None = None, kind: Kind | None = "recipe"
) -> Path:
    """Return the file that `reference` means: a path (relative to `folder`) or a shipped name.

    `kind` None looks among recipes and studies alike. Symlinks are followed, so that what a recipe
    names is looked for beside the real file.
    """
    text = str(reference)
    path = (folder or Path()) / Path(text).expanduser()
    if path.is_file():
        return path.resolve()
    if isinstance(reference, Path) or text.endswith(_SUFFIXES):
        raise RecipeError(_missing(text, path, kind))
    return _by_name(text, kind)


def _by_name(name: str, kind: Kind | None) -> Path:
    known = _known(kind)
    found = {
        full: path
        for full, path in known.items()
        if name in (full, full.rpartition("/")[2], path.relative_to(shipped_recipes()).as_posix())
    }
    if name in found:
        return found[name]
    if not found:
        raise UnknownName(_missing(name, Path(name), kind))
    if len(found) > 1:
        choices = " or ".join(f"'{full}'" for full in sorted(found))
        raise RecipeError(f"'{name}' names several shipped files; write {choices}")
    return next(iter(found.values()))


def _known(kind: Kind | None) -> dict[str, Path]:
    if kind is not None:
        return shipped_names(kind)
    studies = {f"studies/{name}": path for name, path in shipped_names("study").items()}
    return {**shipped_names("recipe"), **studies}


def _missing(reference: str, path: Path, kind: Kind | None) -> str:
    what = kind or "recipe or study"
    if path.is_dir():
        return f"'{reference}' is a folder; name a {what} file in it"
    other = _of_the_other_kind(reference, kind)
    if other:
        return other
    known = sorted(_known(kind))
    stem = Path(reference).stem
    shorts = {full.rpartition("/")[2]: full for full in reversed(known)}
    near = difflib.get_close_matches(reference, known, n=3) or [
        shorts[short] for short in difflib.get_close_matches(stem, list(shorts), n=3)
    ]
    hint = f"; did you mean {' or '.join(repr(name) for name in near)}?" if near else ""
    listed = ", ".join(known) or "none"
    return f"there is no {what} '{reference}'{hint} (shipped: {listed}; or give a path to a file)"


def _of_the_other_kind(reference: str, kind: Kind | None) -> str | None:
    """Say that a recipe was named where a study is needed, or the other way round."""
    if kind is None:
        return None
    other: Kind = "study" if kind == "recipe" else "recipe"
    name = Path(reference).with_suffix("").as_posix().removeprefix("studies/")
    full = [known for known in shipped_names(other) if name in (known, known.rpartition("/")[2])]
    return wrong_kind(reference, other, full[0]) if full else None


def is_study(data: dict[str, Any]) -> bool:
    """Return whether the mapping in a file is a study: it has arms, or factors that make them."""
    return bool(STUDY_KEYS & data.keys())


def wrong_kind(what: str, kind: Kind, name: str) -> str:
    """Return the sentence for `what`, which is of the `kind` that the command cannot take."""
    if kind == "study":
        return f"'{what}' is a study, not a recipe; run it with: posattn compare {name} --out DIR"
    return f"'{what}' is a recipe, not a study; train it with: posattn train {name} --out DIR"
