import os
import signal
import threading

import pytest

from posattn.training.interruption import Interruption


@pytest.mark.parametrize(
    ("number", "reason"),
    [(signal.SIGINT, "stopped by Ctrl-C"), (signal.SIGTERM, "stopped by SIGTERM")],
)
def test_the_first_signal_asks_and_the_second_stops(number: signal.Signals, reason: str) -> None:
    before = signal.getsignal(number)
    with Interruption() as interruption:
        os.kill(os.getpid(), number)
        assert interruption.requested
        assert interruption.reason == reason
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), number)
    assert signal.getsignal(number) is before


def test_another_thread_touches_no_signal() -> None:
    before = signal.getsignal(signal.SIGINT)
    seen = []

    def run() -> None:
        with Interruption() as interruption:
            seen.append((interruption.requested, signal.getsignal(signal.SIGINT)))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert seen == [(False, before)]
