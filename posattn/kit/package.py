"""`write_package`: a small installable package with one mechanism that works, to start from."""

import ast
import keyword
import re
import sys
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

from jinja2 import Environment, StrictUndefined

import posattn
from posattn.errors import RecipeError
from posattn.mechanisms import registry
from posattn.recipe.scalars import resolve_plain
from posattn.training.durable import write_bytes

_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_LONGEST = 40


def write_package(name: str, out: Path | None = None) -> list[Path]:
    """Write the package of a new mechanism into `out` (by default ./posattn-NAME); return its files.

    Raises `RecipeError` if the name cannot be used or the folder is not empty.
    """
    values = _values(name)
    folder = out or Path(values["project"])
    if problems := name_problems(name):
        raise RecipeError(f"'{name}' cannot be the name of a mechanism: {'; '.join(problems)}")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise RecipeError(f"{folder} exists and is not an empty folder; choose another with --out")
    written = []
    try:
        for target, template in _targets(values).items():
            path = folder / target
            path.parent.mkdir(parents=True, exist_ok=True)
            write_bytes(path, _render(template, values).encode())
            written.append(path)
    except OSError as error:
        raise RecipeError(f"the package cannot be written to {folder}: {error}") from error
    return written


def name_problems(name: str) -> list[str]:
    """Return every reason why a new mechanism cannot have this name."""
    if not _NAME.fullmatch(name) or len(name) > _LONGEST:
        return [
            "a name is a word of lower-case letters, digits and single '_', begins with a letter and "
            f"has at most {_LONGEST} characters"
        ]
    if keyword.iskeyword(name) or not isinstance(resolve_plain(name), str):
        return ["the word means something else in Python or YAML"]
    problems = []
    if name in registry.names():
        problems.append(f"the mechanism exists already (known: {', '.join(registry.names())})")
    elif name in registry.plugins():
        owner = registry.plugins()[name].distribution
        problems.append(f"the installed package '{owner}' claims it, though it cannot be used")
    if name in sys.stdlib_module_names:
        problems.append(f"it shadows Python's own module '{name}'")
    values = _values(name)
    if find_spec(values["package"]) is not None:
        problems.append(f"it shadows the Python package '{values['package']}' that is installed")
    taken = _imported(ast.parse(_render("mechanism.py.j2", values)))
    problems += [
        f"its class '{cls}' shadows the one from {taken[cls]}"
        for cls in (values["title"], f"{values['title']}Config")
        if cls in taken
    ]
    return problems


def _values(name: str) -> dict[str, str]:
    parts = [part for part in name.split("_") if part]
    return {
        "name": name,
        "title": "".join(part.capitalize() for part in parts),
        "words": " ".join(parts).capitalize(),
        "package": f"posattn_{name}",
        "project": f"posattn-{name.replace('_', '-')}",
        "posattn_version": posattn.__version__,
    }


def _targets(values: dict[str, str]) -> dict[str, str]:
    name, package = values["name"], values["package"]
    return {
        "pyproject.toml": "pyproject.toml.j2",
        "README.md": "README.md.j2",
        f"{package}/__init__.py": "__init__.py.j2",
        f"{package}/{name}.py": "mechanism.py.j2",
        f"tests/test_{name}.py": "test.py.j2",
        f"recipes/{name}.yaml": "recipe.yaml.j2",
        f"recipes/{name}_study.yaml": "study.yaml.j2",
    }


def _render(template: str, values: dict[str, str]) -> str:
    text = (files("posattn.kit") / "template" / template).read_text(encoding="utf-8")
    environment = Environment(
        undefined=StrictUndefined, keep_trailing_newline=True, autoescape=False
    )
    return environment.from_string(text).render(values)


def _imported(module: ast.Module) -> dict[str, str]:
    """Return the names that the module imports, and where each comes from."""
    names: dict[str, str] = {}
    for node in module.body:
        if isinstance(node, ast.ImportFrom):
            names.update({alias.name: str(node.module) for alias in node.names})
    return names
