"""`auto`: the first backend, in order of rank, that does not refuse; what it chose is on record."""

from typing import ClassVar, final

from typing_extensions import override

from posattn.backends.base import AttentionBackend, AttentionCall, backends
from posattn.shapes import QueryHeads


@final
@backends.register("auto")
class AutoBackend(AttentionBackend):
    """Hands each call to the fastest backend that can run it, and remembers which those were."""

    name: ClassVar[str] = "auto"

    def __init__(self) -> None:
        """Make one of each other backend."""
        others = [name for name in backends if name != self.name]
        self.candidates = [backends.get(name)() for name in others]
        self.chosen: set[str] = set()

    @override
    def refusals(self, call: AttentionCall) -> list[str]:
        reasons: list[str] = []
        for candidate in self.candidates:
            refused = candidate.refusals(call)
            if not refused:
                return []
            reasons.append(f"{candidate.name}: {', '.join(refused)}")
        return reasons

    @override
    def taking(self, call: AttentionCall) -> AttentionBackend:
        for candidate in sorted(self.candidates, key=lambda backend: backend.rank(call)):
            if not candidate.refusals(call):
                return candidate
        return super().taking(call)  # raises with the reasons

    @override
    def run(self, call: AttentionCall) -> QueryHeads:
        taking = self.taking(call)
        self.chosen.add(taking.name)
        return taking.run(call)

    @override
    def attend(self, call: AttentionCall) -> QueryHeads:
        return self.run(call)

    @override
    def ran(self) -> list[str]:
        return sorted(self.chosen)
