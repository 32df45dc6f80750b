"""What a process does if it is asked to end before its command has begun.

In: the command line. Out: handlers, installed before anything else is loaded, which takes a second on a busy machine.
A service that is asked to end ends in order, whenever that is; any other command is interrupted.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from typing import NoReturn

OPTIONS_WITH_VALUE = {"--log-format"}


def heed_signals(arguments: Sequence[str]) -> None:
    """Until the command heeds them in its own way."""
    if command_name(arguments) != "run":
        _interrupt_when_asked()
        return
    for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(each) is not signal.SIG_IGN:
            signal.signal(each, _end_before_it_began)


def has_begun() -> None:
    """From now on an end is no end in order any more, unless the command makes it one."""
    _interrupt_when_asked()
    if signal.getsignal(signal.SIGINT) is _end_before_it_began:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def command_name(arguments: Sequence[str]) -> str | None:
    skip = False
    for item in arguments:
        if skip:
            skip = False
        elif item in OPTIONS_WITH_VALUE:
            skip = True
        elif not item.startswith("-"):
            return item
    return None


def _end_before_it_began(number: int, frame: object) -> NoReturn:
    """There is nothing to close, and an exception could be lost in whatever is being loaded."""
    os._exit(0)


def _interrupt_when_asked() -> None:
    signal.signal(signal.SIGTERM, _interrupt)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as under nohup
        signal.signal(signal.SIGHUP, _interrupt)


def _interrupt(number: int, frame: object) -> NoReturn:
    """The stack is unwound, so that servers a command started are stopped and its files removed."""
    if number == signal.SIGHUP:
        # Its shell says that a terminal is gone, and then the kernel: the second must not interrupt what is unwound.
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    sys.exit(128 + number)
