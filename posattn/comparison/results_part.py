"""`Part`: what all parts of results.json have in common."""

from pydantic import BaseModel, ConfigDict


class Part(BaseModel):
    """A part of the results: frozen, nothing unknown, no NaN."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, serialize_by_alias=True
    )
