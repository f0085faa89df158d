"""Two packages that run DeBERTa-v2 and v3 with transformers' weights: disentangled-flash, flashdeberta."""

from typing import Any, final

import torch
from torch import nn
from typing_extensions import override

from posattn.bench.plan import ModelSize, Stage
from posattn.bench.rivals.transformers import DebertaV3


@final
class DisentangledFlash(DebertaV3):
    """transformers' model with disentangled-flash's encoder: Triton on a GPU, torch on a CPU.

    It is told that no batch has padding, which is so here, and that spares it its mask.
    """

    name = "disentangled-flash"
    library = "disentangled-flash"
    no_padding = (
        "it is built with assume_unpadded here, the fastest way it has, and that takes no padding"
    )
    package = "disentangled_flash"

    @override
    def build(self, size: ModelSize, stage: Stage, device: torch.device) -> nn.Module:
        import disentangled_flash

        return disentangled_flash.optimize_deberta(
            super().build(size, stage, device),
            backend="triton" if device.type == "cuda" else "torch",
            inference=stage == "inference",
            assume_unpadded=True,
        )

    @override
    def prepare(self, model: Any, length: int) -> None:
        if not model.training:
            with torch.inference_mode():
                model.encoder.prepare_for_inference(length)

    @override
    def runs_on(self, model: Any) -> str:
        return str(model.encoder.backend)


@final
class FlashDeberta(DebertaV3):
    """flashdeberta's model, whose kernels need Triton and a GPU."""

    name = "flashdeberta"
    library = "flashdeberta"
    package = "flashdeberta"
    attention = "triton"

    @override
    def refusals(self, device: torch.device) -> list[str]:
        if device.type != "cuda":
            return [f"its kernels need a GPU, not a {device.type}"]
        return super().refusals(device)

    @override
    def make(self, transformers: Any, size: ModelSize) -> nn.Module:
        import flashdeberta

        return flashdeberta.FlashDebertaV2Model(self.config(transformers, size))
