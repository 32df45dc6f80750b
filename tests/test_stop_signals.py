"""Signals are heard whatever the main thread holds or waits for."""

from __future__ import annotations

import signal
import threading

import pytest

from connector.stop_signals import ENDING, on_signals, stopped_by
from tests.servers.patience import until

NUMBER = signal.SIGUSR2


def test_a_signal_that_comes_while_the_main_thread_has_a_lock_waits_for_it_elsewhere() -> None:
    lock, came = threading.Lock(), list[int]()

    def act(number: int) -> None:
        with lock:
            came.append(number)

    with on_signals((NUMBER,), act):
        with lock:
            signal.raise_signal(NUMBER)
            assert not came
        until(lambda: came == [NUMBER], what="the signal")
        signal.raise_signal(NUMBER)
        until(lambda: came == [NUMBER] * 2, what="the second one")


def test_an_event_is_set_in_the_middle_of_a_wait_for_it() -> None:
    with stopped_by(NUMBER) as stop:
        with stop._cond:  # where `wait` has it
            signal.raise_signal(NUMBER)
        assert stop.wait(60)


@pytest.mark.parametrize("nohup", [False, True])
def test_a_terminal_that_is_gone_ends_what_was_not_started_to_outlive_it(nohup: bool) -> None:
    heard = list[int]()
    handler = signal.SIG_IGN if nohup else lambda number, _: heard.append(number)
    before = signal.signal(signal.SIGHUP, handler)
    try:
        with stopped_by(*ENDING) as stop:
            signal.raise_signal(signal.SIGHUP)
            signal.raise_signal(signal.SIGTERM)
            assert stop.wait(60)
        with stopped_by(*ENDING) as stop:
            signal.raise_signal(signal.SIGHUP)
            assert stop.wait(0.2 if nohup else 60) is not nohup
        assert signal.getsignal(signal.SIGHUP) is handler and not heard
    finally:
        signal.signal(signal.SIGHUP, before)


def test_others_signals_are_theirs_and_handlers_are_put_back() -> None:
    heard = list[int]()
    mine = signal.signal(signal.SIGUSR1, lambda number, _: heard.append(number))
    before = signal.getsignal(NUMBER), signal.set_wakeup_fd(-1)
    try:
        with stopped_by(NUMBER) as stop:
            signal.raise_signal(signal.SIGUSR1)
            assert heard == [signal.SIGUSR1]
            signal.raise_signal(NUMBER)
            assert stop.wait(60) and heard == [signal.SIGUSR1]
        assert (signal.getsignal(NUMBER), signal.set_wakeup_fd(-1)) == before
    finally:
        signal.signal(signal.SIGUSR1, mine)
