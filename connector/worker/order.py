"""What the supervisor hands to a worker process through its stdin: nothing of it ever stands in a command line."""

from __future__ import annotations

from dataclasses import dataclass

from connector.config import Configuration


@dataclass(frozen=True, slots=True)
class WorkerOrder:
    configuration: Configuration
    index: int
    log_format: str = "human"
    debug: bool = False
