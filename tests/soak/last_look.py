"""What a soak tells of its end: breaches, or where everybody stood when it failed."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tests.servers.patience import let_pass
from tests.soak.mishaps import Chaos
from tests.worker.harness import Service


@contextlib.contextmanager
def last_look(service: Service, tell: Callable[[BaseException], None]) -> Iterator[None]:
    """Around its life: if that fails, the log has where each thread stands, and ``tell`` says the rest."""
    try:
        yield
    except BaseException as error:
        for pid in service.workers():
            os.kill(pid, signal.SIGUSR1)
        let_pass(1)
        tell(error)
        raise
    finally:
        service.close()


def what_happened(chaos: Chaos, folder: Path) -> str:
    return f"{', '.join(chaos.happened)}\nlog: {folder}"


def tell_breaches(found: Sequence[str], chaos: Chaos, folder: Path) -> None:
    if found:
        print("\n".join(found[:40]), what_happened(chaos, folder), sep="\n", file=sys.stderr)
