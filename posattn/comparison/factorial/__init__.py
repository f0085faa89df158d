"""Factorial studies: combinations of levels as arms, fractions, controls of depth, and effects."""

from posattn.comparison.factorial.design import Design as Design
from posattn.comparison.factorial.design import LeftOut as LeftOut
from posattn.comparison.factorial.expand import expand as expand
from posattn.comparison.factorial.fraction import Fraction as Fraction
from posattn.comparison.factorial.keys import FactorialKeys as FactorialKeys
