"""`StoredModel`: what the readers of a study's files have in common."""

from pydantic import BaseModel, ConfigDict


class StoredModel(BaseModel):
    """A part of a stored file: frozen, unknown keys ignored, no NaN."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)
