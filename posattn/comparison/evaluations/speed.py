"""`speed`: time of a training step and of inference, interleaved over arms, and peak memory.

All arms are timed in one process, one after the other in every round, and the order turns by one arm
from round to round, so that drift of the machine meets all arms alike. Every single time is saved.
"""

from pathlib import Path
from typing import Annotated, ClassVar, Literal, final

from pydantic import Field
from typing_extensions import override

from posattn.comparison.evaluations.arena import Arena
from posattn.comparison.evaluations.base import EvaluationConfig, StudyEvaluation, evaluations
from posattn.comparison.evaluations.memory import MemoryTask, peak_memory
from posattn.comparison.evaluations.timing import TimingTask, time_arms
from posattn.training.durable import write_json

MEMORY_METHOD = (
    "largest resident memory of a fresh process that trains some steps, less what it held before the "
    "model was built (on a GPU: the allocator's peak)"
)
PRELOAD = ("posattn.comparison.evaluations.memory", "torch._dynamo")


class SpeedConfig(EvaluationConfig):
    """How often is measured; sizes are the recipe's unless given."""

    name: Literal["speed"] = "speed"
    rounds: Annotated[int, Field(ge=1)] = 5
    warmup: Annotated[int, Field(ge=0)] = 1
    batch_size: Annotated[int, Field(ge=1)] | None = None
    length: Annotated[int, Field(ge=4)] | None = None
    memory: bool = True
    memory_steps: Annotated[int, Field(ge=1)] = 2


@final
@evaluations.register("speed")
class SpeedEvaluation(StudyEvaluation):
    """Writes speed.json."""

    Config: ClassVar[type[EvaluationConfig]] = SpeedConfig
    config: SpeedConfig
    file: ClassVar[str] = "speed.json"

    @override
    def measure(self, arena: Arena) -> None:
        arena.say("timing all arms in turn")
        config = self.config
        task = TimingTask(
            recipes=dict(arena.recipes),
            rounds=config.rounds,
            warmup=config.warmup,
            batch_size=config.batch_size,
            length=config.length,
        )
        timed = arena.alone(time_arms, task, "speed")
        memory = self._memory(arena) if config.memory else {}
        write_json(
            Path(arena.out) / self.file,
            {
                "conditions": {
                    **timed["conditions"],
                    "rounds": config.rounds,
                    "warmup": config.warmup,
                    "memory_steps": config.memory_steps,
                    "memory_method": MEMORY_METHOD,
                },
                "rounds": timed["rounds"],
                "refused": timed["refused"],
                "peak_memory_bytes": memory,
            },
        )

    def _memory(self, arena: Arena) -> dict[str, int | None]:
        arena.say("peak memory, each arm in a process of its own")
        config = self.config
        tasks = {
            arm: MemoryTask(recipe, config.memory_steps, config.batch_size, config.length)
            for arm, recipe in arena.recipes.items()
        }
        return arena.apart(peak_memory, tasks, PRELOAD)
