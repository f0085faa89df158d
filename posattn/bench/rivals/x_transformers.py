"""Encoders of x-transformers, which has no token table of its own: ours stands before its layers."""

from abc import abstractmethod
from typing import Any, final

import torch
from torch import nn
from typing_extensions import override

from posattn.bench.entrant import Rival, States, Weights
from posattn.bench.inputs import Ids, Visible
from posattn.bench.plan import ModelSize, Stage

LETTERS = {"q": "query", "k": "key", "v": "value", "out": "output"}


class XTransformersEncoder(Rival):
    """Its Encoder on SDPA, where its attention allows that.

    Its norms hold their weight less one; both start where ours do, so that they are left alone.
    """

    library = "x-transformers"
    package = "x_transformers"

    @abstractmethod
    def options(self, size: ModelSize) -> dict[str, Any]:
        """Return the options of its Encoder that say what position adds."""

    @override
    def build(self, size: ModelSize, stage: Stage, device: torch.device) -> nn.Module:
        from x_transformers import Encoder

        layers = Encoder(
            dim=size.hidden_size,
            depth=size.num_layers,
            heads=size.num_heads,
            attn_dim_head=size.hidden_size // size.num_heads,
            ff_mult=size.intermediate_size / size.hidden_size,
            attn_flash=True,
            verbose=False,
            **self.options(size),
        )
        table = nn.Embedding(size.vocab_size, size.hidden_size)
        return nn.ModuleDict({"tokens": table, "layers": layers}).train(stage == "training")

    @override
    def weights(self, model: Any) -> Weights:
        state = model.state_dict()
        found = {"tokens.weight": state["tokens.weight"]}
        for index in range(len(model["layers"].layers) // 2):
            new = f"layers.{index}"
            attention, block = f"layers.layers.{2 * index}.1", f"layers.layers.{2 * index + 1}.1.ff"
            for letter, name in LETTERS.items():
                found[f"{new}.attention.{name}_proj.weight"] = state[
                    f"{attention}.to_{letter}.weight"
                ]
            for end in ("weight", "bias"):
                found[f"{new}.feed_forward.inner_proj.{end}"] = state[f"{block}.0.0.{end}"]
                found[f"{new}.feed_forward.output_proj.{end}"] = state[f"{block}.2.{end}"]
        return found

    @override
    def states(self, model: Any, ids: Ids, visible: Visible | None = None) -> States:
        return model["layers"](model["tokens"](ids), mask=visible)

    @override
    def runs_on(self, model: nn.Module) -> str:
        return "sdpa"


@final
class XAlibi(XTransformersEncoder):
    """With ALiBi."""

    name = "x-transformers ALiBi"

    @override
    def options(self, size: ModelSize) -> dict[str, Any]:
        return {"alibi_pos_bias": True}


@final
class XRotary(XTransformersEncoder):
    """With rotary positions on all channels."""

    name = "x-transformers rotary"

    @override
    def options(self, size: ModelSize) -> dict[str, Any]:
        return {"rotary_pos_emb": True, "rotary_emb_dim": size.hidden_size // size.num_heads}
