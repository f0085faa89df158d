"""What attention consists of: named terms of the logits, layer by layer and head by head."""

from posattn.decomposition.record import Attention as Attention
from posattn.decomposition.record import Recording as Recording
from posattn.decomposition.record import record as record
