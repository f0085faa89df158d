"""Parts of an encoder that see more than single tokens, computed with and without padding."""

from typing import Any

import pytest
import torch

from posattn.encoder.config import EncoderConfig
from posattn.encoder.decoder import PlainDecoderConfig
from posattn.encoder.init import initialize
from posattn.encoder.model import MaskedLanguageModel

IDS = torch.arange(27).view(3, 9) % 20
VISIBLE = torch.arange(9) < torch.tensor([[9], [4], [6]])
SEGMENTS = (torch.arange(9) % 4 == 1).long().expand(3, 9)


def logits_of(options: dict[str, Any], unpad: bool, selected: torch.Tensor | None) -> torch.Tensor:
    sizes = {"hidden_size": 16, "num_heads": 2, "num_layers": 3}
    config = EncoderConfig.model_validate({**sizes, **options, "unpad": unpad})
    model = MaskedLanguageModel(config, PlainDecoderConfig(), vocab_size=20).double().eval()
    initialize(model, seed=0)
    for number, parameter in enumerate(model.parameters()):
        generator = torch.Generator().manual_seed(number)
        noise = torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype)
        parameter.data.add_(0.3 * noise)
    found = model(IDS, visible=VISIBLE, segments=SEGMENTS, selected=selected).logits
    return found if selected is not None else found[VISIBLE]


@pytest.mark.parametrize(
    "options",
    [
        {"mechanism": {"name": "transformer_xl", "segment_term": True}},
        {"mechanism": "rope", "convolution": {"kernel_size": 3}},
        {"mechanism": "rope", "segments": 2, "embedding_size": 8},
    ],
    ids=["segment term", "convolution", "narrow embeddings"],
)
@pytest.mark.parametrize("selects", [False, True], ids=["all places", "selected places"])
def test_padding_does_not_decide_the_logits(options: dict[str, Any], selects: bool) -> None:
    selected = (IDS % 3 == 0) & VISIBLE if selects else None
    padded, unpadded = (logits_of(options, unpad, selected) for unpad in (False, True))
    torch.testing.assert_close(unpadded, padded, rtol=0.0, atol=1e-10)
