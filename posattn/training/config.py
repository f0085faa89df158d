"""`TrainConfig`: the `train` section of a recipe."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from posattn.config import FrozenConfig, Many, Text

Count = Annotated[int, Field(ge=1)]
Every = Annotated[int, Field(ge=0)]
Fraction = Annotated[float, Field(ge=0.0, le=1.0)]
Beta = Annotated[float, Field(ge=0.0, lt=1.0)]
Precision = Literal["float32", "bf16", "float16"]


class StartConfig(FrozenConfig):
    """Weights to start from: `final` of a run, or what `posattn import` wrote.

    Names and shapes must be the model's. What only one side has is an error unless a pattern names
    it (`*` stands for any part of a name); a tensor of another shape is new and unused at once.
    """

    path: Text = Field(description="a folder with model.safetensors")
    accept_new: Many[Text] = Field((), description="parameters that may start anew")
    accept_unused: Many[Text] = Field((), description="stored tensors that may be left out")


def _as_start(value: Any) -> Any:
    """Return a bare folder as the section it stands for."""
    return {"path": value} if isinstance(value, str) else value


class TrainConfig(FrozenConfig):
    """How a model is trained; every count of steps is a count of optimizer steps.

    A step takes `accumulation` micro-batches of `batch_size` sequences. The last step of an epoch
    takes what is left of the epoch, so a step never mixes two epochs and nothing is dropped.
    """

    steps: Count | None = Field(1000, description="optimizer steps; give this or `epochs`")
    epochs: Count | None = Field(None, description="passes over the text, instead of `steps`")
    batch_size: Count = Field(32, description="sequences in a micro-batch")
    accumulation: Count = Field(1, description="micro-batches in a step")

    learning_rate: Annotated[float, Field(gt=0.0)] = Field(1e-3, description="the peak rate")
    schedule: Literal["linear", "cosine", "constant"] = "linear"
    warmup_steps: Every | None = Field(
        None, description="steps of linear warm-up: 1 is one step. Give this or `warmup_fraction`"
    )
    warmup_fraction: Fraction | None = Field(
        None, description="warm-up as a part of all steps: 1.0 (or 1) is the whole run"
    )
    final_fraction: Fraction = Field(
        0.0, description="part of the peak rate at which a linear or cosine schedule ends"
    )

    weight_decay: Annotated[float, Field(ge=0.0)] = 0.01
    position_weight_decay: bool = Field(
        False, description="whether tables and matrices of the position mechanism decay as well"
    )
    betas: Annotated[tuple[Beta, Beta], Field(strict=False)] = (0.9, 0.999)
    eps: Annotated[float, Field(gt=0.0)] = 1e-8
    clip_norm: Annotated[float, Field(gt=0.0)] | None = Field(
        1.0, description="largest norm of the whole gradient; null: no clipping"
    )
    precision: Precision = Field(
        "float32", description="bf16 and float16 are autocast; weights stay float32"
    )
    device: Literal["auto", "cpu", "cuda"] = "auto"
    compile: bool = Field(
        False, description="torch.compile of all between tokens and head; needs a compiler"
    )

    start: Annotated[StartConfig | None, BeforeValidator(_as_start)] = Field(
        None, description="a folder whose weights to start from; null: initial weights by `seed`"
    )
    seed: Every = Field(0, description="decides initial weights and dropout, and data by default")
    data_seed: Every | None = Field(
        None, description="decides data order and token masks; null: the same as `seed`"
    )
    threads: Count | None = Field(None, description="torch threads; null: as torch finds them")
    workers: Every = Field(0, description="processes that prepare batches; 0: none beside the run")

    log_every: Count = Field(10, description="steps between training lines of metrics.jsonl")
    evaluate_every: Every = Field(0, description="0: evaluate at the end only")
    evaluation_tokens: Count | None = Field(
        None, description="tokens of an evaluation; null: the whole validation split"
    )
    checkpoint_every: Every = Field(200, description="0: save at the end and on Ctrl-C only")
    keep_checkpoints: Count = Field(2, description="older ones are deleted")

    divergence_factor: Annotated[float, Field(gt=1.0)] | None = Field(
        2.0,
        description="the run ends as diverged when the mean loss of the last `divergence_steps` "
        "steps is above this factor times the first loss; null: only when it is not finite",
    )
    divergence_steps: Count = 20

    @model_validator(mode="before")
    @classmethod
    def _epochs_replace_default_steps(cls, values: Any) -> Any:
        if isinstance(values, dict) and values.get("epochs") is not None:
            return {"steps": None, **values}
        return values

    @model_validator(mode="after")
    def _one_of_each(self) -> "TrainConfig":
        if self.steps is not None and self.epochs is not None:
            raise ValueError(
                f"both steps ({self.steps}) and epochs ({self.epochs}) are given; "
                "keep one and set the other to null"
            )
        if self.steps is None and self.epochs is None:
            raise ValueError("neither steps nor epochs is given; one of them must be a number")
        if self.warmup_steps is not None and self.warmup_fraction is not None:
            raise ValueError(
                f"both warmup_steps ({self.warmup_steps}) and warmup_fraction "
                f"({self.warmup_fraction}) are given; keep one and set the other to null"
            )
        if self.steps is not None and (self.warmup_steps or 0) > self.steps:
            raise ValueError(
                f"warmup_steps ({self.warmup_steps}) is more than steps ({self.steps}); "
                "the warm-up must end within the run"
            )
        if self.schedule == "constant" and self.final_fraction:
            raise ValueError(
                f"final_fraction ({self.final_fraction}) has no meaning for the constant schedule; "
                "choose linear or cosine, or leave it out"
            )
        return self

    @property
    def order_seed(self) -> int:
        """The seed of data order and token masks."""
        return self.seed if self.data_seed is None else self.data_seed
