"""Integer and table arithmetic on positions: pure functions, no parameters, no configuration."""

from posattn.positions.buckets import log_buckets as log_buckets
from posattn.positions.buckets import t5_buckets as t5_buckets
from posattn.positions.distances import clipped as clipped
from posattn.positions.distances import distances as distances
from posattn.positions.frequencies import Order as Order
from posattn.positions.frequencies import angles as angles
from posattn.positions.frequencies import inverse_frequencies as inverse_frequencies
from posattn.positions.frequencies import sinusoids as sinusoids
from posattn.positions.slopes import authors_slopes as authors_slopes
from posattn.positions.slopes import plain_slopes as plain_slopes
