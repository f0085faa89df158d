"""The heads of a checkpoint: which there are follows from the architecture's name and the stored tensors."""

from collections.abc import Mapping
from typing import Any

from posattn.checkpoints.mapping import Rule, pattern, rule
from posattn.checkpoints.settings import Settings
from posattn.training.weights import Shape

_NOTHING: Mapping[str, Any] = {}


class Heads:
    """Collects heads with their rules; each method adds its head if the architecture has it."""

    def __init__(self, settings: Settings, stored: Mapping[str, Shape]) -> None:
        """Start without heads."""
        self._settings = settings
        self._stored = stored
        self._architecture = settings.architecture()
        self._mapped: set[str] = set()
        self.tasks: dict[str, dict[str, Any]] = {}
        self.rules: list[Rule] = []

    def has_masked_tokens(self, *prefixes: str) -> bool:
        """Return whether there is a masked-token head: promised by the architecture, or stored."""
        if self._architecture.endswith(("ForMaskedLM", "ForPreTraining")):
            return True
        return any(name.startswith(prefixes) for name in self._stored)

    def add(self, task: str, config: dict[str, Any], parts: Mapping[str, str]) -> None:
        """Add a head; `parts` are its modules with the modules they come from."""
        self.tasks[task] = config
        for ours, theirs in parts.items():
            self._mapped.add(theirs)
            self.rules.append(rule(f"{theirs}.{{p}}", f"tasks.{task}.{ours}.{{p}}"))

    def sequence(self, output: str, config: dict[str, Any], parts: Mapping[str, str]) -> None:
        """Add labels of a text, if this is such a model."""
        if self._is("ForSequenceClassification"):
            given = {"name": "sequence", "num_labels": self._labels(output), **config}
            self.add("sequence", given, {**parts, "output": output})

    def choice(self, output: str, config: dict[str, Any], parts: Mapping[str, str]) -> None:
        """Add a choice among texts, if this is such a model."""
        if self._is("ForMultipleChoice"):
            self.add("choice", {"name": "choice", **config}, {**parts, "output": output})

    def token(
        self,
        output: str,
        dropout: float,
        config: Mapping[str, Any] = _NOTHING,
        parts: Mapping[str, str] = _NOTHING,
    ) -> None:
        """Add labels of tokens, if this is such a model."""
        if self._is("ForTokenClassification"):
            labels = self._labels(output)
            given = {"name": "token", "num_labels": labels, "dropout": dropout, **config}
            self.add("token", given, {**parts, "output": output})

    def span(
        self,
        output: str,
        config: Mapping[str, Any] = _NOTHING,
        parts: Mapping[str, str] = _NOTHING,
        ending: str = "ForQuestionAnswering",
    ) -> None:
        """Add start and end of a span, if this is such a model."""
        if self._is(ending):
            self.add("span", {"name": "span", **config}, {**parts, "output": output})

    def pooled(self, pooler: str, transform: dict[str, Any]) -> None:
        """Add the pooled vector, if a pooler is stored and no other head reads it."""
        if pooler not in self._mapped and self._find(f"{pooler}.weight") is not None:
            given = {"name": "vector", "pool": "first", "transform": transform}
            self.add("pooled", given, {"transform.proj": pooler})

    def _is(self, ending: str) -> bool:
        return self._architecture.endswith(ending)

    def _labels(self, output: str) -> int:
        """Return the rows of the last projection, else the labels that the config names."""
        shape = self._find(f"{output}.weight")
        named = len(self._settings.labels()) or self._settings.whole("num_labels", 2)
        return named if shape is None else shape[0]

    def _find(self, name: str) -> Shape | None:
        matching = pattern(name)
        return next((s for stored, s in self._stored.items() if matching.fullmatch(stored)), None)
