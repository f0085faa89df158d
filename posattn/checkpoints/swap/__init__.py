"""A model with another mechanism: what is shared is kept, and what is new may start from what was."""

from posattn.checkpoints.swap.swap import Swapped as Swapped
from posattn.checkpoints.swap.swap import swap_checkpoint as swap_checkpoint
