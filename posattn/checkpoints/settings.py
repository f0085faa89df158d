"""`Settings`: config.json, read key by key, with the family's defaults and clear refusals."""

from collections.abc import Collection, Mapping
from typing import Any

from posattn.errors import CheckpointError

_ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
    "tanh": "tanh",
}
_GATED = {"gelu": "geglu", "gelu_tanh": "geglu_tanh", "relu": "reglu", "silu": "swiglu"}


def activation_of_config(name: str) -> str:
    """Return the name in config.json of an activation of ours, or our name if it has none there."""
    return next((theirs for theirs, ours in _ACTIVATIONS.items() if ours == name), name)


def gate_of_config(name: str) -> str:
    """Return the name in config.json of a gated activation of ours, or our name if it has none there."""
    found = next((plain for plain, gated in _GATED.items() if gated == name), name)
    return activation_of_config(found)


class Settings:
    """Typed access to a config; what is wrong is a CheckpointError that names the key."""

    def __init__(self, data: Mapping[str, Any], where: str) -> None:
        """Wrap the mapping; `where` begins error messages."""
        self._data = data
        self._where = where

    def __contains__(self, key: str) -> bool:
        return self._data.get(key) is not None

    def whole(self, key: str, default: int) -> int:
        """Return a whole number."""
        value = self._data.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self._wrong(key, "a whole number")
        return value

    def number(self, key: str, default: float) -> float:
        """Return a number."""
        value = self._data.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._wrong(key, "a number")
        return float(value)

    def optional(self, key: str, default: float) -> float:
        """Return a number, or the default where the config has null."""
        return default if self._data.get(key) is None else self.number(key, default)

    def flag(self, key: str, default: bool) -> bool:
        """Return true or false."""
        value = self._data.get(key, default)
        if not isinstance(value, bool):
            raise self._wrong(key, "true or false")
        return value

    def text(self, key: str, default: str) -> str:
        """Return a text."""
        value = self._data.get(key, default)
        if not isinstance(value, str):
            raise self._wrong(key, "a text")
        return value

    def names(self, key: str) -> list[str]:
        """Return a list of names that may also be written as `a|b`; empty where the key is missing."""
        value = self._data.get(key) or []
        if isinstance(value, str):
            value = value.lower().split("|")
        if not isinstance(value, list):
            raise self._wrong(key, "a list of names")
        return [str(item).strip() for item in value if str(item).strip() not in ("", "none")]

    def section(self, key: str) -> "Settings":
        """Return the settings in a mapping; empty where the key is missing."""
        value = self._data.get(key) or {}
        if not isinstance(value, Mapping):
            raise self._wrong(key, "a mapping")
        return Settings(value, f"{self._where}, {key}")

    def gate(self, key: str, default: str) -> str:
        """Return our name of the gated activation whose gate has an activation of this name."""
        found = self.activation(key, default)
        if found not in _GATED:
            raise self._wrong(key, f"one of {', '.join(sorted(_GATED))} as a gate")
        return _GATED[found]

    def activation(self, key: str, default: str) -> str:
        """Return our name of an activation."""
        name = self.text(key, default)
        if name not in _ACTIVATIONS:
            raise self._wrong(key, f"one of {', '.join(_ACTIVATIONS)}")
        return _ACTIVATIONS[name]

    def architecture(self) -> str:
        """Return the first architecture, or nothing."""
        found = self._data.get("architectures") or [""]
        return str(found[0])

    def labels(self) -> tuple[str, ...]:
        """Return the names of the labels by id, if there are any."""
        found = self._data.get("id2label") or {}
        return tuple(str(found[key]) for key in sorted(found, key=int))

    def require(self, key: str, allowed: Collection[Any], default: Any) -> None:
        """Raise CheckpointError unless a key has one of the values that posattn computes."""
        if self._data.get(key, default) not in allowed:
            raise self._wrong(key, f"{' or '.join(map(repr, allowed))} to be imported")

    def _wrong(self, key: str, wanted: str) -> CheckpointError:
        return CheckpointError(
            f"{self._where}: config.json has {key} = {self._data.get(key)!r}; it must be {wanted}"
        )
