"""What is looked at before a connector's workers start: its servers, its topics, what was asked of it before.

In: a configuration. Out: what the servers object to; if nothing, what the offsets topic says, if there are marks. What
is only to be told goes to the supervisor, which tells it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from connector.aside import SILENT_SECONDS
from connector.config import Configuration
from connector.errors import ConfigurationError, Problem, RightMissing
from connector.worker.shared_state import SharedState
from connector.worker.slots import Noted, slots_by_marks
from connector.worker.supervisor import Supervisor

if TYPE_CHECKING:
    from connector.worker.checks import Waiting

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StartChecks:
    """``renew``: the configuration with what its references name now, None where nothing is new."""

    shared: SharedState
    supervisor: Supervisor
    renew: Callable[[str], Configuration | None]

    def __call__(
        self, configuration: Configuration, stop: threading.Event, waiting: Waiting
    ) -> tuple[Sequence[Problem], Noted | None]:
        # They bring ScyllaDB's driver, which a process without connectors does without.
        from connector.worker.checks import of_offsets_topic, wait_until_checked
        from connector.worker.lost_positions import lost_positions
        from connector.worker.starting import name_of_start

        found, starts, name = list[str](), self.supervisor.starts, configuration.connector.name

        def again(before: Configuration) -> Configuration:
            nonlocal configuration
            configuration = self.renew(name) or before
            return configuration

        try:
            problems = wait_until_checked(configuration, stop, waiting, found, again)
            if not problems:
                wait_for_wishes(self.shared, stop, waiting)
                if name not in starts and not stop.is_set():
                    starts[name] = name_of_start(configuration, stop, waiting)
            if problems or stop.is_set():
                return problems, None
            noted = slots_by_marks(configuration, stop.is_set)
            lost = None if noted is not None or stop.is_set() else lost_positions(configuration)
        except ConfigurationError as error:
            # Of the offsets topic, whoever of them has read it.
            return error.problems, None
        except RightMissing as error:
            return [of_offsets_topic(error, configuration)], None
        if lost is not None:
            log.warning("%s", lost)
        self.supervisor.warnings[name] = (*found, *([] if lost is None else [lost]))
        return problems, noted


def wait_for_wishes(shared: SharedState, stop: threading.Event, waiting: Waiting) -> None:
    """What was asked before is known before any worker starts."""
    while (why := shared.wait(stop, SILENT_SECONDS)) is not None:
        waiting.waiting_for = why
