"""The kinds of checkpoint that can be imported, one file each; a plug-in adds more."""

from posattn.checkpoints.families.base import Family as Family
from posattn.checkpoints.families.base import Plan as Plan
from posattn.checkpoints.families.base import families as families
from posattn.checkpoints.families.bert import Bert as Bert
from posattn.checkpoints.families.deberta import Deberta as Deberta
from posattn.checkpoints.families.deberta_v2 import DebertaV2 as DebertaV2
from posattn.checkpoints.families.roberta import Roberta as Roberta
