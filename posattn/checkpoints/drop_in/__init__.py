"""Attention of posattn inside models of transformers: `speed_up`, and back with `slow_down`."""

from posattn.checkpoints.drop_in.report import SpeedUp as SpeedUp
from posattn.checkpoints.drop_in.speed_up import slow_down as slow_down
from posattn.checkpoints.drop_in.speed_up import speed_up as speed_up
