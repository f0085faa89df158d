"""The convolution branch of DeBERTa v2 xlarge: neighbours' embeddings, added after the first layer.

    states = norm(layer_1(x) + activation(dropout(conv(x))))        x: the embeddings, 0 at padding

Source: microsoft/DeBERTa, DeBERTa/deberta/bert.py (2023-03-25), ConvLayer.
"""

from typing import final

from jaxtyping import Bool
from torch import Tensor, nn
from torch.nn import functional

from posattn.encoder.config import ConvolutionConfig, EncoderConfig
from posattn.encoder.layer import activation, norm
from posattn.shapes import Hidden


@final
class EmbeddingConvolution(nn.Module):
    """Adds what a convolution makes of the embeddings to the states of the first layer."""

    def __init__(self, encoder: EncoderConfig, config: ConvolutionConfig) -> None:
        """Build the convolution, which keeps the length, and its norm."""
        super().__init__()
        size, kernel = encoder.hidden_size, config.kernel_size
        self.conv = nn.Conv1d(size, size, kernel, padding=kernel // 2, groups=config.groups)
        self.activation = activation(config.activation)
        self.dropout = encoder.hidden_dropout
        self.norm = norm(encoder)

    def forward(
        self, embedded: Hidden, hidden: Hidden, visible: Bool[Tensor, "batch length"] | None
    ) -> Hidden:
        """Return the states with the branch added; padding gives nothing to its neighbours."""
        if visible is not None:
            embedded = embedded.masked_fill(~visible[:, :, None], 0.0)
        mixed = self.conv(embedded.mT).mT
        mixed = self.activation(functional.dropout(mixed, self.dropout, self.training))
        return self.norm(hidden + mixed)
