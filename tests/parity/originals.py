"""What all parity tests share: random weights, batches with padding, and the largest difference."""

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from posattn.checkpoints import families
from posattn.checkpoints.families import Plan
from posattn.checkpoints.mapping import apply_table
from posattn.checkpoints.settings import Settings
from posattn.encoder.config import EncoderConfig
from posattn.encoder.decoder import DecoderConfig, PlainDecoderConfig
from posattn.encoder.encoder import Encoder
from posattn.encoder.heads import HeadConfig
from posattn.encoder.model import MaskedLanguageModel
from posattn.training.weights import copy_weights, shapes, unique_tensors

from .copy_weights import Tensors

TOLERANCE = 1e-5
VOCAB, HIDDEN, HEADS, LAYERS, INNER = 31, 24, 4, 3, 40
LENGTHS = [1, 6, 11, 24]
SHAPE = {
    "vocab_size": VOCAB,
    "hidden_size": HIDDEN,
    "num_attention_heads": HEADS,
    "num_hidden_layers": LAYERS,
    "intermediate_size": INNER,
    "attn_implementation": "eager",
}
Module = TypeVar("Module", bound=nn.Module)


class Sample(NamedTuple):
    ids: Tensor
    visible: Tensor
    segments: Tensor

    @property
    def attention_mask(self) -> Tensor:
        """Return `visible` as other libraries want it."""
        return self.visible.long()


def sample(length: int, side: str = "right", pad: int = 0) -> Sample:
    """Return three sequences: a full one, one half padding, and one token alone."""
    generator = torch.Generator().manual_seed(length)
    ids = torch.randint(3, VOCAB, (3, length), generator=generator)
    counts = torch.tensor([length, length - length // 2, 1])
    visible = torch.arange(length) < counts[:, None]
    if side == "left":
        visible = visible.flip(1)
    segments = (torch.arange(length) >= length // 3).long().expand(3, -1)
    return Sample(ids.masked_fill(~visible, pad), visible, segments)


def randomized(model: Module) -> Module:
    """Return the model in evaluation mode with every parameter random, biases and norms too."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = 0.2 * torch.randn(parameter.shape, generator=generator)
            is_norm = "norm" in name.lower() and not name.endswith("gamma")
            parameter.copy_(1.0 + noise if is_norm and not name.endswith("bias") else noise)
    return model.eval()


def shape(**options: Any) -> EncoderConfig:
    """Return our encoder of the shape that the originals here have."""
    return EncoderConfig(
        hidden_size=HIDDEN,
        num_layers=LAYERS,
        num_heads=HEADS,
        intermediate_size=INNER,
        **options,
    )


def built(config: EncoderConfig, tensors: Tensors) -> MaskedLanguageModel:
    """Return our model with these weights, every one of them and no other."""
    model = MaskedLanguageModel(config, PlainDecoderConfig(), VOCAB)
    model.load_state_dict(tensors, strict=True)
    return model.eval()


def imported(
    original: Any,
    config: EncoderConfig,
    decoder: DecoderConfig | None = None,
    more: Mapping[str, Tensor] | None = None,
) -> MaskedLanguageModel:
    """Return our model of this config with the original's weights, by the mapping of the package.

    `more` are tensors that the checkpoint holds beside those of transformers' model.
    """
    stored = original.state_dict() | dict(more or {})
    plan = _plan(original.config.to_dict(), stored)
    head = HeadConfig.model_validate(plan.head)
    model = MaskedLanguageModel(config, decoder or PlainDecoderConfig(), VOCAB, head)
    mapped = apply_table(plan.table, stored, shapes(unique_tensors(model)[0]))
    assert (mapped.unused, mapped.new) == ([], [])
    copy_weights(model, mapped.tensors)
    return model.eval()


def imported_encoder(
    original: Any, config: EncoderConfig, unused: tuple[str, ...] = (), **changes: Any
) -> Encoder:
    """Return our encoder of this config with the original's weights, by the mapping of the package.

    `changes` go over the original's config, of which the mapping reads names and not what is computed.
    """
    stored = original.state_dict()
    plan = _plan(original.config.to_dict() | changes, stored)
    encoder = Encoder(config, VOCAB)
    wanted = {f"encoder.{name}": shape for name, shape in shapes(encoder.state_dict()).items()}
    mapped = apply_table(plan.table, stored, wanted)
    assert (mapped.unused, mapped.new) == (list(unused), [])
    tensors = {name.removeprefix("encoder."): part for name, part in mapped.tensors.items()}
    encoder.load_state_dict(tensors, strict=True)
    return encoder.eval()


def _plan(config: dict[str, Any], stored: Mapping[str, Tensor]) -> Plan:
    known = [families.get(name)() for name in families.names()]
    family = next(one for one in known if config["model_type"] in one.model_types)
    return family.plan(Settings(config, "original"), shapes(stored))


def difference(ours: Tensor, original: Tensor, visible: Tensor | None = None) -> float:
    """Return the largest difference at real tokens."""
    gap = (ours - original).abs()
    return float((gap if visible is None else gap[visible]).max())
