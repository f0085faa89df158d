"""The attention-bias interface between mechanisms, which state a bias, and backends, which compute it."""

from posattn.bias.base import AttentionBias as AttentionBias
from posattn.bias.base import ScoreMod as ScoreMod
from posattn.bias.dense import DenseBias as DenseBias
from posattn.bias.distance import DistanceBias as DistanceBias
from posattn.bias.gathered import BucketScores as BucketScores
from posattn.bias.gathered import KeyScores as KeyScores
from posattn.bias.gathered import QueryScores as QueryScores
from posattn.bias.products import KeyProducts as KeyProducts
from posattn.bias.products import QueryProducts as QueryProducts
from posattn.bias.total import SumBias as SumBias
from posattn.bias.total import total_bias as total_bias
from posattn.bias.values import RelativeValues as RelativeValues
from posattn.bias.visibility import Causal as Causal
from posattn.bias.visibility import HeadDirections as HeadDirections
from posattn.bias.visibility import MaskMod as MaskMod
from posattn.bias.visibility import Padding as Padding
from posattn.bias.visibility import SameDocument as SameDocument
from posattn.bias.visibility import TokenRule as TokenRule
from posattn.bias.visibility import Visibility as Visibility
from posattn.bias.visibility import VisibilityRule as VisibilityRule
from posattn.bias.visibility import Window as Window
