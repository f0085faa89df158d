"""The masked-token head: states to logits over the vocabulary; BERT's form, and what others leave out."""

from typing import final

from jaxtyping import Float
from pydantic import model_validator
from torch import Tensor, nn
from torch.nn import functional

from posattn.config import FrozenConfig
from posattn.encoder.config import Activation, EncoderConfig
from posattn.encoder.layer import activation, norm

_GATES = {"geglu": "gelu", "geglu_tanh": "gelu_tanh", "reglu": "relu", "swiglu": "silu"}


class HeadConfig(FrozenConfig):
    """Options of the masked-token head; defaults are BERT's."""

    transform: bool = True  # projection, activation and norm; False: output weights only (XLNet)
    bias: bool = True  # of the projection (ModernBERT: False)
    activation: Activation | None = None  # None: the encoder's, of gated ones the gate's
    output_bias: bool = True  # of the output weights

    @model_validator(mode="after")
    def _transform_has_options(self) -> "HeadConfig":
        if not self.transform and not (self.bias and self.activation is None):
            raise ValueError(
                "bias and activation belong to the projection, which transform: false leaves out; "
                "drop them, or write transform: true"
            )
        return self

    def resolved(self, encoder: EncoderConfig) -> "HeadConfig":
        """Return the same head with its activation named."""
        if not self.transform or self.activation is not None:
            return self
        named = _GATES.get(encoder.activation, encoder.activation)
        return self.model_copy(update={"activation": named})

    def problems(self, encoder: EncoderConfig) -> list[str]:
        """Return every reason why this head does not fit the encoder."""
        if self.transform or encoder.embedding_size is None:
            return []
        return [
            f"head.transform: false reads logits from states {encoder.hidden_size} wide, but the token "
            f"table is {encoder.embedding_size} wide; use transform: true"
        ]


@final
class MaskedTokenHead(nn.Module):
    """Projection, activation, norm, and the token table as output weights, with a bias of its own."""

    def __init__(self, config: EncoderConfig, tokens: nn.Embedding, head: HeadConfig) -> None:
        """Tie the output weights to the token table."""
        super().__init__()
        width = tokens.embedding_dim
        self.has_transform = head.transform
        if head.transform:
            self.proj = nn.Linear(config.hidden_size, width, bias=head.bias)
            self.activation = activation(head.activation or config.activation)
            self.norm = norm(config, width)
        self.output = nn.Linear(width, tokens.num_embeddings, bias=head.output_bias)
        self.output.weight = tokens.weight

    def forward(self, hidden: Float[Tensor, "*any hidden"]) -> Float[Tensor, "*any vocab"]:
        """Return the logits of every token."""
        if self.has_transform:
            hidden = self.norm(self.activation(self.proj(hidden)))
        return functional.linear(hidden, self.output.weight, self.output.bias)
