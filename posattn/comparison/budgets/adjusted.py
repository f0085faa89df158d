"""A study with values set in its arms, each with the reason why arms then differ there."""

from collections.abc import Mapping
from typing import Any

from posattn.comparison.study import Study
from posattn.recipe.merge import merge, override
from posattn.recipe.reader import Document, Origin

Changes = Mapping[str, Mapping[str, Any]]
"""By arm and dotted path, the value to set."""


def with_values(overrides: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return an arm's overrides with the value of each dotted path set."""
    document = Document(dict(overrides))
    for path, value in values.items():
        document = merge(document, override(path, value, Origin(path)).document())
    return dict(document.data)


def adjusted(study: Study, changes: Changes, reasons: Mapping[str, str]) -> Study:
    """Return the study with these values in its arms; `reasons` by path become compensations."""
    arms = {arm: with_values(own, changes.get(arm, {})) for arm, own in study.arms.items()}
    return study.model_copy(
        update={"arms": arms, "compensations": {**study.compensations, **reasons}},
    )
