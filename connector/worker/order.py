"""What the supervisor hands to a worker process through its stdin: nothing of it ever stands in a command line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from connector.config import Configuration
from connector.secrets import known
from connector.worker.settings import WorkerIdentity
from connector.worker.slots import Noted


@dataclass(frozen=True, slots=True)
class WorkerOrder:
    configuration: Configuration
    index: int
    log_format: str = "human"
    debug: bool = False
    # Of this start of it: what it is called is known before it says anything.
    who: WorkerIdentity | None = None
    # What anybody of this `run` has found out by reading the whole offsets topic.
    noted: Noted | None = None
    # The name of this start of the connector, if nobody ran it before.
    start: str | None = None
    # Of the connector, as its start has found it.
    warnings: tuple[str, ...] = ()
    # What the filter of the new process has to know: references were resolved here.
    secrets: Mapping[str, str] = field(default_factory=known, repr=False)
