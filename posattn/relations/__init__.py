"""What relates two tokens: their distance on a line, their offset on a grid, or what the user gives."""

from posattn.relations.base import RelationConfig as RelationConfig
from posattn.relations.choice import AnyRelation as AnyRelation
from posattn.relations.geometry import Geometry as Geometry
from posattn.relations.given import CategoryRelation as CategoryRelation
from posattn.relations.given import DistanceRelation as DistanceRelation
from posattn.relations.grid import GridRelation as GridRelation
from posattn.relations.line import LineRelation as LineRelation
