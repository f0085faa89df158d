"""The field type for 'any relation'."""

from typing import Annotated, TypeAlias

from pydantic import Field

from posattn.relations.given import CategoryRelation, DistanceRelation
from posattn.relations.grid import GridRelation
from posattn.relations.line import LineRelation

AnyRelation: TypeAlias = Annotated[
    LineRelation | GridRelation | DistanceRelation | CategoryRelation, Field(discriminator="name")
]
