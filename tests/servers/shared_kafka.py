"""The broker that all processes of a run share: an idle one takes processor time, and each has to get warm.

In: pytest's configuration, in whichever process. Out: the broker. With pytest-xdist the process that hands out the
tests has it, from when the first of the others asks until all have ended; without, it is the fixture's own.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, NoReturn

import pytest

from connector.errors import EmbeddedError
from embedded import ports
from embedded.kafka import EmbeddedKafka

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController

_ASKED_AT = "port where the broker is asked for"
#: A broker gives up its start before.
_ANSWER_SECONDS = 300.0


class SharedKafka(EmbeddedKafka):
    """Another process's."""

    def __init__(self, port: int, pid: int) -> None:
        super().__init__(port=port)
        self._pid = pid

    @property
    def pid(self) -> int:
        return self._pid

    def start(self) -> NoReturn:
        raise EmbeddedError("all processes share this broker: a test that mistreats one takes own_kafka")

    kill = pause = resume = restart = stop = start


@contextlib.contextmanager
def shared_kafka(config: pytest.Config) -> Iterator[EmbeddedKafka]:
    """One that runs."""
    at = getattr(config, "workerinput", {}).get(_ASKED_AT)
    if at is None:
        with EmbeddedKafka() as broker:
            yield broker
    else:
        yield asked_for(at)


def asked_for(at: int) -> SharedKafka:
    """The broker, from the counter at that port."""
    with socket.create_connection((ports.HOST, at), _ANSWER_SECONDS) as asked, asked.makefile() as answer:
        said = answer.read()
    port, _, pid = said.partition(" ")
    if not (port.isdecimal() and pid.isdecimal()):
        raise EmbeddedError(f"no broker: {said or 'the process that hands out the tests ends'}")
    return SharedKafka(int(port), int(pid))


class Counter:
    """Where the processes that run tests ask for the broker, which is started for the first of them."""

    def __init__(self) -> None:
        self._listening = socket.create_server((ports.HOST, 0))
        self.port: int = self._listening.getsockname()[1]
        self._broker = EmbeddedKafka()
        self._lock = threading.Lock()
        self._closed = False
        threading.Thread(target=self._answer, daemon=True, name="shared broker").start()

    def _answer(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                asking = self._listening.accept()[0]
                with asking, contextlib.suppress(OSError):
                    asking.sendall(self._started().encode())

    def _started(self) -> str:
        with self._lock:
            if self._closed:
                return ""
            try:
                running = self._broker.start()
                return f"{running.port} {running.pid}"
            except Exception as error:  # whatever it is, it is told where a test fails of it
                return f"{type(error).__name__}: {error}"

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._broker.close()
        self._listening.close()


class _Held:
    """In the process that hands out the tests; loaded there alone."""

    def __init__(self) -> None:
        self._counter = Counter()

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: WorkerController) -> None:
        node.workerinput[_ASKED_AT] = self._counter.port

    def pytest_unconfigure(self) -> None:
        self._counter.close()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config, specs: list[object]) -> None:
    """Before the other processes are there. Of the ports this one has a share, too."""
    ports.keep_to_share(len(specs), len(specs) + 1)
    config.pluginmanager.register(_Held(), "shared broker")
