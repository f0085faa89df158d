"""`SpeedUp`: what `speed_up` did to a model, in words."""

from dataclasses import dataclass


@dataclass(frozen=True)
class SpeedUp:
    """What was replaced and what computes it now. `largest_difference` is that of the check."""

    hosts: tuple[str, ...]
    num_encoders: int
    num_layers: int
    backend: str
    chosen: tuple[str, ...]  # what `auto` took for the check, without and with gradients
    beyond: str  # of log buckets; empty where there are none
    largest_difference: float

    def __str__(self) -> str:
        took = f", which takes {' and '.join(self.chosen)} here" if self.chosen else ""
        buckets = f"; log buckets past their last distance: {self.beyond}" if self.beyond else ""
        return (
            f"posattn: attention of {self.num_layers} layers of {' and '.join(self.hosts)} now runs "
            f"through backend '{self.backend}'{took}{buckets}; largest difference from "
            f"transformers {self.largest_difference:.1e}"
        )
