"""The tensor aliases that cross module borders, and the one legend of axis letters.

B batch, L length, Q query, K key, H heads, D head_dim, E hidden size, R buckets (rows of a relative table).
Layout is `[batch, heads, length, head_dim]` everywhere. A size-1 axis may stand for all of its kind
where an alias starts its axis name with `#`.
"""

from typing import TypeAlias

from jaxtyping import Bool, Float, Int
from torch import Tensor

Hidden: TypeAlias = Float[Tensor, "batch length hidden"]
QueryHidden: TypeAlias = Float[Tensor, "batch query hidden"]
KeyHidden: TypeAlias = Float[Tensor, "batch key hidden"]
PerHead: TypeAlias = Float[Tensor, "batch heads length head_dim"]
QueryHeads: TypeAlias = Float[Tensor, "batch heads query head_dim"]
KeyHeads: TypeAlias = Float[Tensor, "batch heads key head_dim"]
ValueHeads: TypeAlias = Float[Tensor, "batch heads key value_dim"]
Logits: TypeAlias = Float[Tensor, "#batch #heads #query #key"]
Visible: TypeAlias = Bool[Tensor, "batch length"]
Positions: TypeAlias = Int[Tensor, "batch length"]
Pairs: TypeAlias = Int[Tensor, "#batch query key"]
