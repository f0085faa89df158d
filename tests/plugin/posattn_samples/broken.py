"""Mechanisms that posattn must refuse at the door."""

from typing import Literal

from posattn.mechanisms import Mechanism, MechanismConfig


class WrongHookConfig(MechanismConfig):
    name: Literal["wrong_hook"] = "wrong_hook"


class WrongHook(Mechanism[WrongHookConfig]):
    Config = WrongHookConfig

    def bias(self, query, key):
        return None


class TakesLayersConfig(MechanismConfig):
    name: Literal["takes_layers"] = "takes_layers"
    layers: int = 3


class TakesLayers(Mechanism[TakesLayersConfig]):
    Config = TakesLayersConfig


class NotRopeConfig(MechanismConfig):
    name: Literal["rope"] = "rope"


class NotRope(Mechanism[NotRopeConfig]):
    Config = NotRopeConfig


def a_function(config, dims):
    return None
