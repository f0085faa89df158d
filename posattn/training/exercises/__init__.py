"""Exercises: objectives with one right answer at each place, on random symbols; one file each."""

from posattn.training.exercises.base import Exercise, ExerciseConfig, Posed, Symbols
from posattn.training.exercises.copy import Copy, CopyConfig
from posattn.training.exercises.index import Index, IndexConfig
from posattn.training.exercises.needle import Needle, NeedleConfig
from posattn.training.exercises.offset import Offset, OffsetConfig
from posattn.training.exercises.offset_by_symbol import OffsetBySymbol, OffsetBySymbolConfig
from posattn.training.exercises.order import Order, OrderConfig
from posattn.training.exercises.pointed import Pointed, PointedConfig
from posattn.training.exercises.reverse import Reverse, ReverseConfig
from posattn.training.exercises.twin_masks import TwinMasks, TwinMasksConfig

__all__ = [
    "Copy",
    "CopyConfig",
    "Exercise",
    "ExerciseConfig",
    "Index",
    "IndexConfig",
    "Needle",
    "NeedleConfig",
    "Offset",
    "OffsetBySymbol",
    "OffsetBySymbolConfig",
    "OffsetConfig",
    "Order",
    "OrderConfig",
    "Pointed",
    "PointedConfig",
    "Posed",
    "Reverse",
    "ReverseConfig",
    "Symbols",
    "TwinMasks",
    "TwinMasksConfig",
]
