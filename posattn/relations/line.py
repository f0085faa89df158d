"""Tokens on a line: a pair is related by query position minus key position."""

from typing import Literal, final

from typing_extensions import override

from posattn.relations.base import RelationConfig


@final
class LineRelation(RelationConfig):
    """Distance on a line; it has no options."""

    name: Literal["line"] = "line"

    @override
    def describe(self) -> str:
        return "distance on a line"
