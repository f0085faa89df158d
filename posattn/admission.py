"""What a registry lets in: a class of the right kind, with its own options and hooks that can be called.

A plug-in is looked at before anything uses it, so that what is wrong with it is said at the door, in
words about its class, and not by an error in the middle of a run.
"""

import inspect
import re
import types
from collections.abc import Callable, Iterator
from typing import ClassVar, get_args, get_origin

from pydantic import BaseModel

Check = Callable[[str, object], str]
"""From a name and what is to be entered under it to what is wrong with that; empty if nothing is."""

_NAME = re.compile(r"[a-z][a-z0-9_]*")


def class_check(*bases: type, config: type[BaseModel] | None = None) -> Check:
    """Return the check that an entry is a complete class below one of `bases`.

    Its hooks must take what the base class's hooks take. With `config` it must have a `Config` below
    that class, whose options leave ours alone.
    """

    def check(name: str, entry: object) -> str:
        if not _NAME.fullmatch(name):
            return f"the name '{name}' is not lower-case letters, digits and '_'"
        wanted = " or ".join(base.__name__ for base in bases)
        if not isinstance(entry, type):
            shown = getattr(entry, "__qualname__", repr(entry))
            return f"{shown} is not a class; it must be a class derived from {wanted}"
        base = next((base for base in bases if issubclass(entry, base)), None)
        if base is None:
            return f"{entry.__name__} is not derived from {wanted}"
        faults = [*_left_out(entry, base), *_misfits(entry, base)]
        if config is not None:
            faults += _config_faults(name, entry, config)
        elif (own := getattr(entry, "name", name)) != name:
            faults.append(f"it is registered as '{name}' but calls itself '{own}'")
        return "; ".join(faults)

    return check


def instance_check(kind: type) -> Check:
    """Return the check that an entry is an object of this class which carries its registered name."""

    def check(name: str, entry: object) -> str:
        if not isinstance(entry, kind):
            return f"{entry!r} is not a {kind.__name__}"
        own = getattr(entry, "name", name)
        return "" if own == name else f"it is registered as '{name}' but calls itself '{own}'"

    return check


def _left_out(entry: type, base: type) -> Iterator[str]:
    """Yield what the base class asks for and the class does not have."""
    if inspect.isabstract(entry):
        missing = ", ".join(sorted(getattr(entry, "__abstractmethods__", ())))
        yield f"{entry.__name__} does not define {missing}"
    for cls in base.__mro__:
        for attribute, annotation in vars(cls).get("__annotations__", {}).items():
            if get_origin(annotation) is not ClassVar or hasattr(base, attribute):
                continue
            wanted = get_args(annotation)[0]
            value = getattr(entry, attribute, None)
            if value is None:
                yield f"{entry.__name__} has no '{attribute}'"
            elif get_origin(wanted) is None and not isinstance(value, wanted):
                yield f"{entry.__name__}.{attribute} is {value!r}, not a {wanted.__name__}"


def _misfits(entry: type, base: type) -> Iterator[str]:
    """Yield the hooks of the class that cannot be called as those of the base class are."""
    for name, hook in _hooks(base).items():
        own = inspect.getattr_static(entry, name)
        if own is hook or own is object.__init__:
            continue
        called = f"{entry.__name__}.{name}"
        has_self = not isinstance(own, staticmethod)
        if isinstance(own, classmethod | staticmethod):
            own = own.__func__
        if not isinstance(own, types.FunctionType):
            yield f"{called} is not a method but of type {type(own).__name__}"
        elif not _takes(own, hook, has_self):
            names = ", ".join(inspect.signature(hook).parameters)
            yield f"{called}{_bare(own)} has the wrong signature; it is called as {name}({names})"


def _hooks(base: type) -> dict[str, Callable[..., object]]:
    """Return the public methods that posattn's own classes define, and the constructor."""
    hooks: dict[str, Callable[..., object]] = {
        name: hook
        for cls in reversed(base.__mro__)
        if cls.__module__.startswith("posattn.")
        for name, hook in vars(cls).items()
        if isinstance(hook, types.FunctionType) and (name == "__init__" or name[0] != "_")
    }
    if inspect.getattr_static(base, "__init__") is object.__init__:
        hooks["__init__"] = _made_of_nothing
    return hooks


def _made_of_nothing(self: object) -> None:
    """Stand for the constructor of a class that has none."""


def _takes(own: types.FunctionType, hook: Callable[..., object], has_self: bool) -> bool:
    """Return whether `own` can be called with what the hook is called with."""
    positional: list[None] = []
    named: dict[str, None] = {}
    for parameter in inspect.signature(hook).parameters.values():
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
            named[parameter.name] = None
        elif parameter.kind is not inspect.Parameter.VAR_KEYWORD:
            positional.append(None)
    try:
        inspect.signature(own).bind(*positional[0 if has_self else 1 :], **named)
    except TypeError:
        return False
    return True


def _bare(function: types.FunctionType) -> str:
    """Return the signature without annotations."""
    signature = inspect.signature(function)
    bare = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    return str(signature.replace(parameters=bare, return_annotation=inspect.Signature.empty))


def _config_faults(name: str, entry: type, base: type[BaseModel]) -> list[str]:
    """Return what is wrong with the options of the class."""
    config = getattr(entry, "Config", None)
    if not isinstance(config, type) or not issubclass(config, base) or config is base:
        return [f"{entry.__name__}.Config is not a class derived from {base.__name__}"]
    faults = [*_shadowing(name, config, base), *_misfits(config, base)]
    for setting in ("extra", "frozen"):
        if config.model_config.get(setting) != base.model_config.get(setting):
            wanted = base.model_config.get(setting)
            faults.append(f"{config.__name__} changes model_config['{setting}'] from {wanted!r}")
    if faults:
        return faults
    try:
        config.model_json_schema()
    except Exception as error:  # whatever pydantic finds, it must not stop `posattn schema`
        return [f"{config.__name__} has no JSON Schema ({type(error).__name__}: {error})"]
    return []


def _shadowing(name: str, config: type[BaseModel], base: type[BaseModel]) -> Iterator[str]:
    """Yield the options that hide ours."""
    title = config.__name__
    default = config.model_fields["name"].default
    if default != name:
        yield f"{title}.name is {default!r} by default, where the registered name is '{name}'"
    elif get_args(config.model_fields["name"].annotation) != (name,):
        yield f"{title}.name shadows ours; write name: Literal[{name!r}] = {name!r}"
    own = {key for cls in config.__mro__ if cls not in base.__mro__ for key in _annotated(cls)}
    for field in sorted(own & set(config.model_fields) - {"name"}):
        if field in base.model_fields:
            yield f"the option '{field}' of {title} shadows posattn's own; rename it"
        elif hasattr(base, field):
            yield f"the option '{field}' of {title} hides the method {base.__name__}.{field}; rename it"


def _annotated(cls: type) -> list[str]:
    return list(vars(cls).get("__annotations__", {}))
