"""`BenchPlan`: what is measured, of which size, against whom, and how often."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from posattn.config import FrozenConfig, Many, Text
from posattn.training.config import Precision

Count = Annotated[int, Field(ge=1)]
Stage = Literal["inference", "training"]
"""A forward without gradients, or a forward in training mode with its backward pass."""


class ModelSize(FrozenConfig):
    """The size that all encoders of a benchmark share."""

    hidden_size: Count = 128
    num_heads: Count = 4
    num_layers: Count = 2
    intermediate_size: Count = 512
    vocab_size: Count = 1024

    @model_validator(mode="after")
    def _heads_divide(self) -> "ModelSize":
        if self.hidden_size % self.num_heads:
            raise ValueError(
                f"hidden_size {self.hidden_size} is no multiple of num_heads {self.num_heads}"
            )
        return self

    def __str__(self) -> str:
        return (
            f"{self.num_layers} layers, {self.hidden_size} wide, {self.num_heads} heads, "
            f"{self.intermediate_size} in feed-forward, vocabulary of {self.vocab_size}"
        )


class Mixed(FrozenConfig):
    """How long texts of mixed length are: log-normal, from `shortest` to the length of the cell."""

    median: Count = 24
    sigma: Annotated[float, Field(ge=0)] = 0.7
    shortest: Count = 4


class Cell(FrozenConfig):
    """One shape of input and what is done with it; `length` is the most, if texts are `mixed`."""

    batch_size: Count
    length: Count
    stage: Stage = "inference"
    mixed: Mixed | None = Field(None, description="null: every text has `length` tokens")

    @model_validator(mode="after")
    def _room_for_the_shortest(self) -> "Cell":
        if self.mixed is not None and self.length < self.mixed.shortest:
            raise ValueError(
                f"texts of mixed length have at least {self.mixed.shortest} tokens, and length "
                f"{self.length} is the most; raise length"
            )
        return self

    def kind(self) -> str:
        """Return in words what is done, and with texts of which kind."""
        return self.stage if self.mixed is None else f"{self.stage}, texts of mixed length"

    def shape(self) -> str:
        """Return batch size and length in words."""
        most = "" if self.mixed is None else "up to "
        return f"({self.batch_size}, {most}{self.length})"

    def __str__(self) -> str:
        return f"{self.stage} {self.shape()}"


class Target(FrozenConfig):
    """How many times as fast as `against` the backends of ours should be, of which the best counts."""

    subject: Text
    cell: Cell
    against: Text
    at_least: Annotated[float, Field(gt=0)]
    precision: Precision = Field("float32", description="of ours")


class BenchPlan(FrozenConfig):
    """Everything that decides a benchmark."""

    name: Annotated[Text, Field(pattern=r"^[a-z0-9-]+$")] = "custom"
    command: Text = Field("", description="the command line that measures the same")
    size: ModelSize = ModelSize()
    subjects: Many[Text] = Field(
        (), description="architectures with rivals, or mechanisms, by name; empty: all of the first"
    )
    cells: Annotated[Many[Cell], Field(min_length=1)] = (Cell(batch_size=8, length=128),)
    backends: Annotated[Many[Text], Field(min_length=1)] = ("auto",)
    precisions: Annotated[Many[Precision], Field(min_length=1)] = ("float32",)
    compiled: bool = Field(False, description="measure torch.compile of ours as well")
    rivals: bool = Field(True, description="measure what of the other libraries is installed")
    rounds: Count = Field(5, description="at least so many rounds of every cell")
    most_rounds: Count = Field(100, description="and no more than so many")
    seconds: Annotated[float, Field(ge=0)] = Field(
        2.0, description="rounds go on until a cell has taken so long"
    )
    warmup: Count = 1
    memory: Literal["none", "largest", "all"] = Field(
        "largest", description="cells whose peak memory is measured, each in a fresh process"
    )
    device: Literal["cpu", "cuda"] = "cpu"
    threads: Count | None = Field(None, description="torch threads; null: as torch finds them")
    targets: Many[Target] = ()

    def measures_memory_of(self, cell: Cell) -> bool:
        """Return whether the peak memory of a cell is wanted."""
        if self.memory != "largest":
            return self.memory == "all"
        alike = [other for other in self.cells if other.kind() == cell.kind()]
        return cell == max(alike, key=lambda one: (one.length, one.batch_size))
