"""From other libraries' names of weights to posattn's, where posattn.checkpoints has no mapping of its own.

Each takes a `Source` and returns tensors that `MaskedLanguageModel.load_state_dict` takes strictly;
`Source.unused()` then names what the function left alone, which should be nothing.
"""

from collections.abc import Mapping
from typing import TypeAlias

import torch
from torch import Tensor

Tensors: TypeAlias = dict[str, Tensor]


class Source:
    """A checkpoint's tensors; it remembers which were read."""

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        self._tensors = dict(tensors)
        self._used: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return name in self._tensors

    def take(self, name: str) -> Tensor:
        """Return a tensor and mark it as used."""
        self._used.add(name)
        return self._tensors[name].detach().clone()

    def module(self, old: str, new: str) -> Tensors:
        """Return the weight, and the bias if there is one, of a module under its new name."""
        found = {f"{new}.weight": self.take(f"{old}.weight")}
        if f"{old}.bias" in self:
            found[f"{new}.bias"] = self.take(f"{old}.bias")
        return found

    def unused(self) -> list[str]:
        """Return the names that nothing has read."""
        return sorted(set(self._tensors) - self._used)


def x_transformers(source: Source, num_layers: int) -> Tensors:
    """Return the encoder weights of x-transformers' Encoder without GLU; it has no token table.

    Its norms store their weight less one (`unit_offset`).
    """
    found: Tensors = {}
    for index in range(num_layers):
        attention, block = f"layers.{2 * index}", f"layers.{2 * index + 1}"
        new = f"encoder.layers.{index}"
        for letter, name in (("q", "query"), ("k", "key"), ("v", "value"), ("out", "output")):
            weight = source.take(f"{attention}.1.to_{letter}.weight")
            found[f"{new}.attention.{name}_proj.weight"] = weight
        found[f"{new}.attention_norm.weight"] = 1.0 + source.take(f"{attention}.0.0.gamma")
        found |= source.module(f"{block}.1.ff.0.0", f"{new}.feed_forward.inner_proj")
        found |= source.module(f"{block}.1.ff.2", f"{new}.feed_forward.output_proj")
        found[f"{new}.feed_forward_norm.weight"] = 1.0 + source.take(f"{block}.0.0.gamma")
    found["encoder.final_norm.weight"] = 1.0 + source.take("final_norm.gamma")
    for computed in ("rotary_pos_emb.inv_freq", "rotary_pos_emb.scale", "polar_pos_emb.inv_freq"):
        if computed in source:
            source.take(computed)
    return found | _zero_biases(found, "norm")


def _zero_biases(found: Tensors, suffix: str) -> Tensors:
    names = [name for name in found if name.endswith(f"{suffix}.weight")]
    return {f"{name[:-6]}bias": torch.zeros(len(found[name])) for name in names}
