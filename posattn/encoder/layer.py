"""One encoder layer: attention, feed-forward, and the norms around them."""

from typing import Any, final

from torch import nn
from torch.nn import functional

from posattn.backends import AttentionBackend
from posattn.encoder.attention import MultiHeadAttention, Observer
from posattn.encoder.config import GATED, EncoderConfig
from posattn.encoder.position import Arrangement, PositionStack
from posattn.shapes import Hidden, KeyHidden, QueryHidden


def activation(name: str) -> nn.Module:
    """Return the module of an activation's name; a gated one is named after its gate."""
    known: dict[str, Any] = {
        "gelu": nn.GELU(),
        "gelu_tanh": nn.GELU(approximate="tanh"),
        "relu": nn.ReLU(),
        "silu": nn.SiLU(),
        "tanh": nn.Tanh(),
        "geglu": nn.GELU(),
        "geglu_tanh": nn.GELU(approximate="tanh"),
        "reglu": nn.ReLU(),
        "swiglu": nn.SiLU(),
    }
    module: nn.Module = known[name]
    return module


def norm(config: EncoderConfig, size: int | None = None) -> nn.Module:
    """Return the norm of the recipe over `size` channels, by default the hidden size."""
    size = config.hidden_size if size is None else size
    if config.norm.kind == "rms_norm":
        return nn.RMSNorm(size, eps=config.norm.eps)
    return nn.LayerNorm(size, eps=config.norm.eps, bias=config.norm.bias)


@final
class FeedForward(nn.Module):
    """Two projections around an activation; gated ones multiply by a third."""

    def __init__(self, config: EncoderConfig) -> None:
        """Build the projections."""
        super().__init__()
        size, inner = config.hidden_size, config.inner_size()
        bias, output_bias = config.feed_forward_bias is True, config.feed_forward_bias is not False
        self.is_gated = config.activation in GATED
        self.inner_proj = nn.Linear(size, inner, bias=bias)
        if self.is_gated:
            self.gate_proj = nn.Linear(size, inner, bias=bias)
        self.output_proj = nn.Linear(inner, size, bias=output_bias)
        self.activation = activation(config.activation)

    def forward(self, hidden: Hidden) -> Hidden:
        """Return the block's output, without the residual."""
        inner = self.inner_proj(hidden)
        if self.is_gated:
            inner = inner * self.activation(self.gate_proj(hidden))
        else:
            inner = self.activation(inner)
        return self.output_proj(inner)


@final
class EncoderLayer(nn.Module):
    """Attention and feed-forward with residual sums.

    `query_hidden` may differ from `hidden` (keys and values): the residual follows the queries, as in
    DeBERTa's mask decoder.
    """

    def __init__(
        self, config: EncoderConfig, stack: PositionStack, layer: int, backend: AttentionBackend
    ) -> None:
        """Build both blocks and their norms."""
        super().__init__()
        self.is_pre_norm = config.norm.placement == "pre"
        self.dropout = config.hidden_dropout
        self.attention = MultiHeadAttention(config, stack, layer, backend)
        has_norm = layer > 0 or config.norm.before_first
        self.attention_norm = norm(config) if has_norm else nn.Identity()
        self.feed_forward = FeedForward(config)
        self.feed_forward_norm = norm(config)

    def forward(
        self,
        query_hidden: QueryHidden,
        hidden: KeyHidden,
        prepared: Arrangement,
        observer: Observer | None = None,
    ) -> QueryHidden:
        """Return the states of the queries after this layer."""
        if self.is_pre_norm:
            query = self.attention_norm(query_hidden)
            keys = query if hidden is query_hidden else self.attention_norm(hidden)
            middle = query_hidden + self._drop(self.attention(query, keys, prepared, observer))
            return middle + self._drop(self.feed_forward(self.feed_forward_norm(middle)))
        attended = self._drop(self.attention(query_hidden, hidden, prepared, observer))
        middle = self.attention_norm(query_hidden + attended)
        return self.feed_forward_norm(middle + self._drop(self.feed_forward(middle)))

    def _drop(self, hidden: Hidden) -> Hidden:
        return functional.dropout(hidden, self.dropout, self.training)
