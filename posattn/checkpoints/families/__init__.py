"""The kinds of checkpoint that can be imported, one file each; a plug-in adds more."""

from posattn.checkpoints.families.alibi_bert import JinaBert as JinaBert
from posattn.checkpoints.families.alibi_bert import MosaicBert as MosaicBert
from posattn.checkpoints.families.base import Family as Family
from posattn.checkpoints.families.base import Plan as Plan
from posattn.checkpoints.families.base import families as families
from posattn.checkpoints.families.bert import Bert as Bert
from posattn.checkpoints.families.deberta import Deberta as Deberta
from posattn.checkpoints.families.deberta_v2 import DebertaV2 as DebertaV2
from posattn.checkpoints.families.modernbert import ModernBert as ModernBert
from posattn.checkpoints.families.nomic_bert import NomicBert as NomicBert
from posattn.checkpoints.families.roberta import Roberta as Roberta
from posattn.checkpoints.families.roformer import RoFormer as RoFormer
from posattn.checkpoints.families.t5 import T5Encoder as T5Encoder
from posattn.checkpoints.families.xlnet import XLNet as XLNet
