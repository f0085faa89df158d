"""`Registry[T]`: a name is taken once, plug-ins arrive by entry point, a misspelt name gets a hint."""

import difflib
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Generic, TypeVar

from posattn.errors import DuplicateName, PluginError, UnknownName

T = TypeVar("T")


@dataclass(frozen=True)
class Plugin:
    """Where an entry came from, and why it cannot be used if `problem` is not empty."""

    name: str
    distribution: str
    problem: str = ""


class Registry(Generic[T]):
    """Things of one kind by name. Built-in entries register on import, plug-ins load when asked for."""

    def __init__(
        self, kind: str, group: str, check: Callable[[str, object], str] | None = None
    ) -> None:
        """Make an empty registry; `kind` is the word for error texts, `group` the entry-point group.

        `check` is shown each plug-in's name and entry and says what is wrong, if anything is.
        """
        self.kind = kind
        self.group = group
        self._check = check
        self._entries: dict[str, T] = {}
        self._plugins: dict[str, Plugin] | None = None

    def register(self, name: str) -> Callable[[type], type]:
        """Return a class decorator that enters the class under `name`."""

        def enter(entry: type) -> type:
            self.add(name, entry)  # type: ignore[arg-type]
            return entry

        return enter

    def add(self, name: str, entry: T) -> None:
        """Enter `entry` under `name`, which must be free."""
        if name in self._entries:
            raise DuplicateName(
                f"the {self.kind} name '{name}' is already taken by {self._entries[name]!r}; "
                "choose another name"
            )
        self._entries[name] = entry

    def get(self, name: str) -> T:
        """Return the entry of `name`, or raise with the nearest known name."""
        if name not in self._entries:
            self._load_plugins()
        if name in self._entries:
            return self._entries[name]
        broken = self.plugins().get(name)
        if broken is not None and broken.problem:
            raise PluginError(
                f"the {self.kind} '{name}' comes from the package '{broken.distribution}', "
                f"which cannot be used: {broken.problem}"
            )
        raise UnknownName(self._unknown(name))

    def names(self) -> list[str]:
        """Return all usable names, sorted."""
        self._load_plugins()
        return sorted(self._entries)

    def plugins(self) -> dict[str, Plugin]:
        """Return every plug-in found, the broken ones with their problem."""
        self._load_plugins()
        return dict(self._plugins or {})

    def problem(self, name: str, entry: object) -> str:
        """Return why `entry` cannot serve under `name`; empty if it can."""
        return self._check(name, entry) if self._check else ""

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __contains__(self, name: object) -> bool:
        return name in self.names()

    def __len__(self) -> int:
        return len(self.names())

    def _unknown(self, name: str) -> str:
        near = difflib.get_close_matches(name, self.names(), n=1)
        hint = f"; did you mean '{near[0]}'?" if near else ""
        return f"unknown {self.kind} '{name}'{hint} (known: {', '.join(self.names())})"

    def _load_plugins(self) -> None:
        if self._plugins is not None:
            return
        self._plugins = {}
        found: dict[str, list[EntryPoint]] = {}
        for point in entry_points(group=self.group):
            found.setdefault(point.name, []).append(point)
        for name, points in sorted(found.items()):
            plugin = self._load(name, points)
            self._plugins[name] = plugin
            if plugin.problem:
                warnings.warn(
                    f"the {self.kind} plug-in '{name}' of the package '{plugin.distribution}' "
                    f"is left out: {plugin.problem}",
                    stacklevel=3,
                )

    def _load(self, name: str, points: list[EntryPoint]) -> Plugin:
        owners = ", ".join(sorted({p.dist.name if p.dist else "unknown" for p in points}))
        if len(points) > 1:
            return Plugin(name, owners, "several packages claim this name; uninstall all but one")
        before = dict(self._entries)
        try:
            entry = points[0].load()
            problem = self.problem(name, entry) if name not in before else ""
        except KeyboardInterrupt:
            raise
        except (
            BaseException
        ) as error:  # a plug-in may even call sys.exit; it must not stop the rest
            self._entries = before
            return Plugin(name, owners, f"{type(error).__name__}: {error}")
        if name in before and before[name] is not entry:
            self._entries = before
            return Plugin(name, owners, f"the name is already taken by {before[name]!r}")
        added = set(self._entries) - set(before)
        if added - {name}:
            self._entries = before
            return Plugin(name, owners, f"it registers other names than its own: {sorted(added)}")
        if problem:
            self._entries = before
            return Plugin(name, owners, problem)
        self._entries[name] = entry
        return Plugin(name, owners)
