"""Probes by name: tasks that ask one question of a position mechanism; the built-in ones register here."""

from posattn.comparison.probes.absolute import IndexProbe, ReverseProbe
from posattn.comparison.probes.base import (
    AnyProbe,
    OptionalProbe,
    Prediction,
    Probe,
    ProbeConfig,
    accuracy_at,
    make_probe,
    probes,
)
from posattn.comparison.probes.facts import Facts, facts_of
from posattn.comparison.probes.order import OrderProbe, TwinMasksHiddenProbe, TwinMasksProbe
from posattn.comparison.probes.recall import CopyProbe, NeedleProbe
from posattn.comparison.probes.retrieval import OffsetBySymbolProbe, OffsetProbe, PointedProbe

__all__ = [
    "AnyProbe",
    "CopyProbe",
    "Facts",
    "IndexProbe",
    "NeedleProbe",
    "OffsetBySymbolProbe",
    "OffsetProbe",
    "OptionalProbe",
    "OrderProbe",
    "PointedProbe",
    "Prediction",
    "Probe",
    "ProbeConfig",
    "ReverseProbe",
    "TwinMasksHiddenProbe",
    "TwinMasksProbe",
    "accuracy_at",
    "facts_of",
    "make_probe",
    "probes",
]
