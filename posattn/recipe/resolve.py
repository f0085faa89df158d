"""From a file to one document: `extends` followed, overrides applied, relative paths made absolute."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from posattn.errors import RecipeError
from posattn.recipe.merge import Override, merge, read_overrides
from posattn.recipe.reader import Document, KeyPath, Origin, read_file
from posattn.recipe.shipped import find_recipe, is_study, wrong_kind

PATH_KEYS = frozenset({"path", "paths", "file", "files"})
"""Below `data` and `train`, what stands under one of these keys is a path, in plug-ins' options too."""
START = ("train", "start")
"""What stands here is a path."""
_WITH_PATHS = ("data", "train")
NAME_OR_PATH_KEYS = frozenset({"dataset"})
"""Below `data`, what stands under one of these keys is a path if it starts as `./`, `../` or `~`."""

Overrides = Sequence[str | Override] | Mapping[str, Any]


def resolve_recipe(
    reference: str | Path, overrides: Overrides = (), *, folder: Path | None = None
) -> Document:
    """Return the recipe `reference` as one merged document that knows where each value came from."""
    document = _with_bases(find_recipe(reference, folder=folder), ())
    for item in read_overrides(overrides):
        below = Path(item.origin.source).parent if item.origin.line else Path.cwd()
        document = merge(document, absolute_paths(item.document(), below))
    return document


def absolute_paths(document: Document, folder: Path) -> Document:
    """Return `document` with the relative paths under `data` and `train` joined to `folder`."""
    data = {
        key: _absolute(value, tuple(key.split(".")), folder) for key, value in document.data.items()
    }
    return Document(data, document.origins)


def _with_bases(path: Path, chain: tuple[Path, ...]) -> Document:
    if path in chain:
        names = " -> ".join(str(step) for step in (*chain[chain.index(path) :], path))
        raise RecipeError(f"{chain[-1]}: 'extends' runs in a circle: {names}")
    document = absolute_paths(read_file(path), path.parent)
    if is_study(document.data):
        raise RecipeError(wrong_kind(str(path), "study", str(path)))
    data = {"name": path.stem, **document.data}
    base = data.pop("extends", None)
    own = Document(data, {("name",): Origin(str(path)), **document.origins})
    if "extends" not in document.data:
        return own
    if not isinstance(base, str):
        where = document.origin(("extends",))
        raise RecipeError(f"{where}: 'extends' names one recipe, as a path or a shipped name")
    try:
        target = find_recipe(base, folder=path.parent)
    except RecipeError as error:
        raise type(error)(f"{document.origin(('extends',))}: extends: {error}") from error
    inherited = _with_bases(target, (*chain, path))
    # the description of another recipe would be wrong for this one
    kept = {key: value for key, value in inherited.data.items() if key != "description"}
    return merge(Document(kept, inherited.origins), own)


def _absolute(value: Any, path: KeyPath, folder: Path) -> Any:
    if path[0] not in _WITH_PATHS:
        return value
    if isinstance(value, dict):
        return {key: _absolute(item, (*path, key), folder) for key, item in value.items()}
    if isinstance(value, list):
        return [_absolute(item, path, folder) for item in value]
    if isinstance(value, str) and (path == START or _is_path(value, path[-1])):
        return os.path.normpath(folder / Path(value).expanduser())
    return value


def _is_path(value: str, key: str | int) -> bool:
    """Return whether a text is a path: by its key, or by how it starts where a name may stand too."""
    if key in NAME_OR_PATH_KEYS:
        return value.startswith(("./", "../", "~"))
    return bool(value) and key in PATH_KEYS and "://" not in value
