"""What a run has seen so far: counts, sums of the next training line, the divergence rule."""

import hashlib
import math
from collections import deque
from collections.abc import Sequence
from typing import Any

from posattn.training.batches import Batch
from posattn.training.config import TrainConfig
from posattn.training.step import StepResult


class Tally:
    """Counts, and sums since the last training line; part of every checkpoint."""

    def __init__(self, config: TrainConfig) -> None:
        """Start at step 0."""
        self.factor = config.divergence_factor
        self.step = 0
        self.tokens = 0
        self.targets = 0
        self.first_loss: float | None = None
        self.recent: deque[float] = deque(maxlen=config.divergence_steps)
        self.line_loss = self.line_norm = 0.0
        self.line_targets = self.line_norms = 0
        self.learning_rate: float | None = None
        self.chain = ""

    def add(self, result: StepResult, batches: Sequence[Batch]) -> str | None:
        """Count a step; return why the run has diverged, or None."""
        self.step += 1
        self.tokens += result.tokens
        self.targets += result.targets
        self.line_loss += result.loss_sum
        self.line_targets += result.targets
        if result.gradient_norm is not None and (result.moved or result.problem):
            self.line_norm += result.gradient_norm
            self.line_norms += 1
        if result.learning_rate is not None:
            self.learning_rate = result.learning_rate
        for batch in batches:
            chained = self.chain + batch.digest()
            self.chain = hashlib.sha256(chained.encode()).hexdigest()
        return result.problem or self._divergence(result)

    def take_line(self, epoch: int, skipped: int, seconds: float) -> dict[str, Any]:
        """Return the training line of the steps since the last one, and start the next.

        `loss` is the mean over target tokens, `gradient_norm` that before clipping, in the mean,
        `learning_rate` that of the last step, `batches` a SHA-256 chained over the batches in
        order, `skipped` the steps so far that moved no weight.
        """
        line = {
            "kind": "train",
            "step": self.step,
            "epoch": epoch,
            "tokens": self.tokens,
            "targets": self.targets,
            "loss": self.line_loss / self.line_targets if self.line_targets else None,
            "learning_rate": self.learning_rate,
            "gradient_norm": self.line_norm / self.line_norms if self.line_norms else None,
            "skipped": skipped,
            "seconds": round(seconds, 3),
            "batches": self.chain,
        }
        if not self.line_targets:
            line["reason"] = "no target token since the last line"
        self._clear()
        return line

    def state(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return {
            "step": self.step,
            "tokens": self.tokens,
            "targets": self.targets,
            "first_loss": self.first_loss,
            "recent": list(self.recent),
            "line_loss": self.line_loss,
            "line_targets": self.line_targets,
            "line_norm": self.line_norm,
            "line_norms": self.line_norms,
            "learning_rate": self.learning_rate,
            "chain": self.chain,
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Take back what `state` returned."""
        self.recent.clear()
        self.recent.extend(state["recent"])
        for name in set(self.state()) - {"recent"}:
            setattr(self, name, state[name])

    def _clear(self) -> None:
        self.line_loss = self.line_norm = 0.0
        self.line_targets = self.line_norms = 0
        self.learning_rate = None
        self.chain = ""

    def _divergence(self, result: StepResult) -> str | None:
        if not result.targets:
            return None
        loss = result.loss_sum / result.targets
        if self.first_loss is None:
            self.first_loss = loss
        self.recent.append(loss)
        if self.factor is None or len(self.recent) < (self.recent.maxlen or 1):
            return None
        mean = math.fsum(self.recent) / len(self.recent)
        if mean <= self.factor * self.first_loss:
            return None
        return (
            f"the mean loss of the last {len(self.recent)} steps is {mean:.4g}, more than "
            f"divergence_factor ({self.factor:g}) times the first loss ({self.first_loss:.4g}); "
            "a lower learning_rate or a longer warm-up often helps"
        )
