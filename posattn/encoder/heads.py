"""The masked-token head: states to logits over the vocabulary (BERT's form)."""

from typing import final

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from posattn.encoder.config import EncoderConfig
from posattn.encoder.layer import activation, norm


@final
class MaskedTokenHead(nn.Module):
    """Projection, activation, norm, and the token table as output weights, with a bias of its own."""

    def __init__(self, config: EncoderConfig, tokens: nn.Embedding) -> None:
        """Tie the output weights to the token table."""
        super().__init__()
        self.proj = nn.Linear(config.hidden_size, tokens.embedding_dim)
        self.activation = activation(config.activation)
        self.norm = norm(config, tokens.embedding_dim)
        self.output = nn.Linear(tokens.embedding_dim, tokens.num_embeddings)
        self.output.weight = tokens.weight

    def forward(self, hidden: Float[Tensor, "*any hidden"]) -> Float[Tensor, "*any vocab"]:
        """Return the logits of every token."""
        states = self.norm(self.activation(self.proj(hidden)))
        return functional.linear(states, self.output.weight, self.output.bias)
