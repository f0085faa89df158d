"""Position mechanisms: one file each, its options beside it, and the registry that knows them all."""

from posattn.mechanisms.alibi import ALiBi as ALiBi
from posattn.mechanisms.alibi import ALiBiConfig as ALiBiConfig
from posattn.mechanisms.base import AnyMechanismConfig as AnyMechanismConfig
from posattn.mechanisms.base import EncoderDims as EncoderDims
from posattn.mechanisms.base import FanInLinear as FanInLinear
from posattn.mechanisms.base import Flops as Flops
from posattn.mechanisms.base import Geometry as Geometry
from posattn.mechanisms.base import Heads as Heads
from posattn.mechanisms.base import LayerPattern as LayerPattern
from posattn.mechanisms.base import Mechanism as Mechanism
from posattn.mechanisms.base import MechanismConfig as MechanismConfig
from posattn.mechanisms.base import Site as Site
from posattn.mechanisms.base import Traits as Traits
from posattn.mechanisms.base import mechanisms as _mechanisms
from posattn.mechanisms.disentangled import ClippedDistances as ClippedDistances
from posattn.mechanisms.disentangled import DisentangledAttention as DisentangledAttention
from posattn.mechanisms.disentangled import DisentangledConfig as DisentangledConfig
from posattn.mechanisms.disentangled import LogBuckets as LogBuckets
from posattn.mechanisms.fire import Fire as Fire
from posattn.mechanisms.fire import FireConfig as FireConfig
from posattn.mechanisms.kerple import Kerple as Kerple
from posattn.mechanisms.kerple import KerpleConfig as KerpleConfig
from posattn.mechanisms.learned import LearnedConfig as LearnedConfig
from posattn.mechanisms.learned import LearnedPositions as LearnedPositions
from posattn.mechanisms.none import NoPosition as NoPosition
from posattn.mechanisms.none import NoPositionConfig as NoPositionConfig
from posattn.mechanisms.rope import RotaryConfig as RotaryConfig
from posattn.mechanisms.rope import RotaryPositions as RotaryPositions
from posattn.mechanisms.sandwich import Sandwich as Sandwich
from posattn.mechanisms.sandwich import SandwichConfig as SandwichConfig
from posattn.mechanisms.shaw import ShawConfig as ShawConfig
from posattn.mechanisms.shaw import ShawPositions as ShawPositions
from posattn.mechanisms.sinusoidal import SinusoidalConfig as SinusoidalConfig
from posattn.mechanisms.sinusoidal import SinusoidalPositions as SinusoidalPositions
from posattn.mechanisms.t5 import T5Bias as T5Bias
from posattn.mechanisms.t5 import T5Config as T5Config
from posattn.mechanisms.transformer_xl import TransformerXL as TransformerXL
from posattn.mechanisms.transformer_xl import TransformerXLConfig as TransformerXLConfig
from posattn.mechanisms.tupe import RelativeBuckets as RelativeBuckets
from posattn.mechanisms.tupe import Tupe as Tupe
from posattn.mechanisms.tupe import TupeConfig as TupeConfig

registry = _mechanisms
names = registry.names
get = registry.get
