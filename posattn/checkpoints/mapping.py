"""Mapping tables: from the names of weights elsewhere to ours, with an account of every tensor.

A table is a list of rules. A rule's old name may hold `{n}`, a layer's number, `{p}`, which is `weight` or
`bias` (and matches the old spellings `gamma` and `beta` of norms), and one part in round brackets that
may be missing: `(bert.)pooler.dense.{p}`. Two tensors may stand for one of ours only if they are equal.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import torch
from torch import Tensor

from posattn.errors import CheckpointError
from posattn.training.weights import Shape

Tensors: TypeAlias = Mapping[str, Tensor]
Convert: TypeAlias = Callable[[Tensor, Tensors], tuple[Tensor, ...]]
"""From a stored tensor, and all others, to the tensors of the rule's new names."""
Fate: TypeAlias = Literal["mapped", "copy", "derived", "filled"]

_NORMS = {"gamma": "weight", "beta": "bias"}


def unchanged(tensor: Tensor, stored: Tensors) -> tuple[Tensor, ...]:
    """Return the tensor itself."""
    return (tensor,)


@dataclass(frozen=True)
class Rule:
    """One line of a table; `how` says in words what `convert` does."""

    old: str
    new: tuple[str, ...]
    convert: Convert = unchanged
    how: str = ""

    def targets(self, name: str) -> tuple[str, ...] | None:
        """Return our names for a stored tensor, or None if the rule is about another."""
        match = pattern(self.old).fullmatch(name)
        if match is None:
            return None
        found = match.groupdict()
        kind = found.get("p", "")
        return tuple(
            new.replace("{n}", found.get("n", "")).replace("{p}", _NORMS.get(kind, kind))
            for new in self.new
        )


def rule(old: str, *new: str, convert: Convert = unchanged, how: str = "") -> Rule:
    """Return the rule from one old name to one or several of ours."""
    return Rule(old, new, convert, how)


def pattern(old: str) -> re.Pattern[str]:
    """Return the pattern of an old name as tables write it."""
    text = re.escape(old).replace(r"\(", "(?:").replace(r"\)", ")?")
    text = text.replace(r"\{n\}", r"(?P<n>\d+)").replace(r"\{p\}", "(?P<p>weight|bias|gamma|beta)")
    return re.compile(text)


@dataclass(frozen=True)
class Derived:
    """A stored tensor that follows from the config, so that nothing is lost without it.

    `expected` computes what must be stored for that to be true, where it is not the same in all versions.
    """

    old: str
    why: str
    expected: Callable[[Tensor], Tensor] | None = None

    def is_about(self, name: str) -> bool:
        """Return whether this is the stored tensor."""
        text = re.escape(self.old).replace(r"\{any\}", r"(?:.*\.)?").replace(r"\{n\}", r"\d+")
        text = text.replace(r"\(", "(?:").replace(r"\)", ")?")
        return re.fullmatch(text, name) is not None


@dataclass(frozen=True)
class Fill:
    """A parameter of ours that the family does not have: a constant makes it do nothing."""

    new: str  # {n} stands for any number
    value: float
    why: str

    def is_about(self, name: str) -> bool:
        """Return whether this is the parameter."""
        return pattern(self.new).fullmatch(name) is not None


POSITION_IDS = (
    Derived("{any}position_ids", "counts from 0; computed anew"),
    Derived("{any}token_type_ids", "zeros; computed anew"),
)


@dataclass(frozen=True)
class Table:
    """What becomes of each stored tensor, and what is given to ours that have no counterpart."""

    rules: tuple[Rule, ...]
    derived: tuple[Derived, ...] = POSITION_IDS
    fills: tuple[Fill, ...] = ()


@dataclass(frozen=True)
class Entry:
    """One tensor's account."""

    old: str
    new: tuple[str, ...]
    shape: Shape
    dtype: str
    fate: Fate
    how: str = ""


@dataclass
class Mapped:
    """The outcome of a table: our tensors by name, and the accounts."""

    tensors: dict[str, Tensor] = field(default_factory=dict)
    entries: list[Entry] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)


def apply_table(table: Table, stored: Tensors, wanted: Mapping[str, Shape]) -> Mapped:
    """Return our tensors and the account of every stored one; `wanted` are the model's shapes.

    CheckpointError if a tensor's shape is not the model's, or if two stand for one and differ.
    """
    mapped = Mapped()
    came_from: dict[str, str] = {}
    for name, tensor in stored.items():
        derived = next((item for item in table.derived if item.is_about(name)), None)
        if derived is not None:
            _check_derived(derived, name, tensor)
            mapped.entries.append(_entry(name, (), tensor, "derived", derived.why))
            continue
        found = first_rule(table.rules, name, wanted)
        if found is None:
            mapped.unused.append(name)
            continue
        line, targets = found
        fate: Fate = "mapped"
        for target, part in zip(targets, line.convert(tensor, stored), strict=True):
            _check_shape(name, target, part, wanted[target])
            if target not in mapped.tensors:
                mapped.tensors[target], came_from[target] = part, name
                continue
            fate = "copy"
            _check_copy(name, came_from[target], part, mapped.tensors[target])
        mapped.entries.append(_entry(name, targets, tensor, fate, line.how))
    _fill(table.fills, mapped, wanted)
    mapped.new += sorted(set(wanted) - set(mapped.tensors))
    return mapped


def first_rule(
    rules: Iterable[Rule], name: str, wanted: Mapping[str, Shape]
) -> tuple[Rule, tuple[str, ...]] | None:
    """Return the first rule for a tensor whose targets the model has, with the targets."""
    for line in rules:
        targets = line.targets(name)
        if targets is not None and all(target in wanted for target in targets):
            return line, targets
    return None


def _check_derived(derived: Derived, name: str, tensor: Tensor) -> None:
    if derived.expected is None:
        return
    expected = derived.expected(tensor)
    if not torch.allclose(tensor.to(expected.dtype), expected, rtol=0.0, atol=1e-2):
        raise CheckpointError(
            f"{name} is computed here and not stored ({derived.why}), but its values are others, so it was "
            "trained or belongs to another form; it cannot be imported"
        )


def _fill(fills: Iterable[Fill], mapped: Mapped, wanted: Mapping[str, Shape]) -> None:
    for name, shape in wanted.items():
        if name in mapped.tensors:
            continue
        line = next((line for line in fills if line.is_about(name)), None)
        if line is not None:
            mapped.tensors[name] = torch.full(shape, line.value)
            mapped.entries.append(Entry("", (name,), shape, "float32", "filled", line.why))


def _entry(old: str, new: tuple[str, ...], tensor: Tensor, fate: Fate, how: str) -> Entry:
    dtype = str(tensor.dtype).removeprefix("torch.")
    return Entry(old, new, tuple(tensor.shape), dtype, fate, how)


def _check_shape(old: str, new: str, part: Tensor, wanted: Shape) -> None:
    if tuple(part.shape) != wanted:
        raise CheckpointError(
            f"{old} gives {new} the shape {tuple(part.shape)}, but config.json asks for {wanted}: "
            "config.json and weights do not belong together"
        )


def _check_copy(old: str, other: str, part: Tensor, first: Tensor) -> None:
    if not torch.equal(part, first):
        raise CheckpointError(
            f"{old} and {other} are one parameter here, such as output weights tied to the token "
            "table, but their values differ; untied weights cannot be imported"
        )


def per_head_thirds(num_heads: int) -> Convert:
    """Return the split of rows that hold query, key and value of head 0, then of head 1, ..."""

    def convert(fused: Tensor, stored: Tensors) -> tuple[Tensor, ...]:
        query, key, value = fused.unflatten(0, (num_heads, 3, -1)).unbind(1)
        return query.flatten(0, 1), key.flatten(0, 1), value.flatten(0, 1)

    return convert


def row_blocks(count: int) -> Convert:
    """Return the split of rows into as many equal blocks, one after the other."""

    def convert(fused: Tensor, stored: Tensors) -> tuple[Tensor, ...]:
        return fused.chunk(count)

    return convert


def times(matrix: str) -> Convert:
    """Return the product with a stored projection: a table in front of it becomes one behind it."""

    def convert(table: Tensor, stored: Tensors) -> tuple[Tensor, ...]:
        found = [name for name in stored if pattern(matrix).fullmatch(name)]
        if len(found) != 1:
            raise CheckpointError(f"the checkpoint has no {matrix}, which config.json asks for")
        return (table @ stored[found[0]].T,)

    return convert
