"""`cached_property` that `torch.compile` can look through; that of the standard library takes a lock."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class cached_property(Generic[T]):
    """Compute an attribute when it is first asked for, and keep it, also on a frozen dataclass."""

    def __init__(self, function: Callable[[Any], T]) -> None:
        """Take the method that computes the attribute."""
        self.function = function
        self.name = function.__name__
        self.__doc__ = function.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> "cached_property[T]": ...

    @overload
    def __get__(self, instance: object, owner: type) -> T: ...

    def __get__(self, instance: object | None, owner: type) -> "T | cached_property[T]":
        if instance is None:
            return self
        value = self.function(instance)
        object.__setattr__(instance, self.name, value)
        return value
