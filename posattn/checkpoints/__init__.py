"""Checkpoints of other libraries, read into recipes and weights of posattn."""

from posattn.checkpoints.families import Family as Family
from posattn.checkpoints.families import families as families
from posattn.checkpoints.loading import from_pretrained as from_pretrained
from posattn.checkpoints.loading import import_checkpoint as import_checkpoint
from posattn.checkpoints.pretrained import Pretrained as Pretrained
from posattn.checkpoints.report import ImportReport as ImportReport
