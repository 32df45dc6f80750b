"""Whether records are made by the kernel, decided once per process.

In: the configuration's wish, output options. Out: ``Native``: what there is, and why not more.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Final

from connector.config import OutputConfig
from connector.native.kafka import BlockClient
from connector.native.library import Kernel, NoKernel
from connector.native.selftest import Difference, compare

log = logging.getLogger(__name__)

_SEEDS: Final = range(8)


@dataclass(frozen=True, slots=True)
class Native:
    """``kernel`` makes records, ``client`` takes them in blocks; each may be missing, ``why_not`` says why."""

    kernel: Kernel | None = None
    client: BlockClient | None = None
    why_not: str | None = None


def load_native(wanted: bool, options: OutputConfig) -> Native:
    """Load the kernel and hold it against the plain way, with the options in force. Says what came of it."""
    if not wanted:
        log.info("native path: off: native=off")
        return Native(why_not="native=off")
    try:
        kernel = Kernel()
        compare(kernel, options, _SEEDS)
    except NoKernel as error:
        log.info("native path: off: %s", error)
        return Native(why_not=str(error))
    except Difference as error:
        log.warning("native path: off: it makes other records than the plain way, please report this: %s", error)
        return Native(why_not="its records differ from the plain way's: see the log")
    except Exception as error:
        log.warning("native path: off: its self-test failed", exc_info=error)
        return Native(why_not=f"its self-test failed: {type(error).__name__}: {error}")
    try:
        native = Native(kernel, BlockClient(kernel))
    except NoKernel as error:
        native = Native(kernel, why_not=f"records are handed to Kafka one by one: {error}")
    log.info("native path: on%s", f"; {native.why_not}" if native.why_not else "")
    return native
