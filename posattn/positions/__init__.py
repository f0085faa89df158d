"""Integer and table arithmetic on positions: pure functions, no parameters, no configuration."""

from posattn.positions.buckets import log_buckets as log_buckets
from posattn.positions.buckets import t5_buckets as t5_buckets
from posattn.positions.distances import clipped as clipped
from posattn.positions.distances import distances as distances
from posattn.positions.frequencies import Order as Order
from posattn.positions.frequencies import angles as angles
from posattn.positions.frequencies import inverse_frequencies as inverse_frequencies
from posattn.positions.frequencies import sinusoids as sinusoids
from posattn.positions.relations import Distances as Distances
from posattn.positions.relations import GivenPairs as GivenPairs
from posattn.positions.relations import OfDistance as OfDistance
from posattn.positions.relations import PairFunction as PairFunction
from posattn.positions.relations import Relation as Relation
from posattn.positions.rotary_scaling import dynamic_ntk_frequencies as dynamic_ntk_frequencies
from posattn.positions.rotary_scaling import ntk_frequencies as ntk_frequencies
from posattn.positions.rotary_scaling import yarn_frequencies as yarn_frequencies
from posattn.positions.rotary_scaling import yarn_range as yarn_range
from posattn.positions.rotation import PairLayout as PairLayout
from posattn.positions.rotation import turned_pairs as turned_pairs
from posattn.positions.slopes import authors_slopes as authors_slopes
from posattn.positions.slopes import plain_slopes as plain_slopes
