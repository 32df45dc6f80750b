"""Sets up logging, once for the whole process: one line an event on stderr, for people or as JSON.

Fields given as `extra={...}` follow the message as `name=value`, or become members of the JSON object. Every line
passes the filter of `connector.secrets`, whoever wrote it.
"""

from __future__ import annotations

import datetime
import json
import logging
import sys
import traceback
from dataclasses import dataclass
from typing import IO, Any

from connector.secrets import filtered, scrub, scrubbed

FORMATS = ("human", "json")

_OUR_LOGGERS = ("connector", "smt", "spark_jobs", "embedded")
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


@dataclass(frozen=True, slots=True)
class Speaker:
    """The worker process whose log lines these are: several write to one terminal, and many processes to one index."""

    connector: str
    worker: int

    def __str__(self) -> str:
        return f"{self.connector}/{self.worker}"


def set_up_logging(
    log_format: str = "human",
    *,
    debug: bool = False,
    stream: IO[str] | None = None,
    speaker: Speaker | None = None,
) -> None:
    """Replaces whatever logging was set up before. Other packages' chatter begins at warnings."""
    handler = logging.StreamHandler(stream if stream is not None else sys.stderr)
    made = JsonFormatter if log_format == "json" else HumanFormatter
    handler.setFormatter(made(debug, speaker))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    for name in _OUR_LOGGERS:
        logging.getLogger(name).setLevel(logging.DEBUG if debug else logging.INFO)
    # What the CQL driver sees of nodes that come and go is told by our own reads, with what is done about it.
    logging.getLogger("cassandra").setLevel(logging.WARNING if debug else logging.CRITICAL)
    # What is wrong with somebody's request is answered to him.
    logging.getLogger("tornado").setLevel(logging.INFO if debug else logging.CRITICAL)
    logging.captureWarnings(True)


def filter_stderr() -> None:
    """For a process of our own, before any library is loaded: handlers that libraries bring, the interpreter's
    tracebacks and warnings pass the filter too. Not stdout, which carries rows of tables: they are never changed."""
    sys.stderr = filtered(sys.stderr)


class _Formatter(logging.Formatter):
    def __init__(self, debug: bool, speaker: Speaker | None = None) -> None:
        super().__init__()
        self._debug, self._speaker = debug, speaker

    def _fields(self, record: logging.LogRecord) -> dict[str, Any]:
        return {name: value for name, value in vars(record).items() if name not in _STANDARD}

    def _error(self, record: logging.LogRecord) -> str | None:
        """The exception in one line; the whole traceback only when debugging."""
        if not record.exc_info or record.exc_info[1] is None:
            return None
        lines = traceback.format_exception(record.exc_info[1])
        return "".join(lines).rstrip() if self._debug else lines[-1].rstrip()


class HumanFormatter(_Formatter):
    """`2024-05-01T12:00:00.123+02:00 INFO [orders/0] connector.worker: message name=value`; the name is a worker's."""

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.datetime.fromtimestamp(record.created).astimezone().isoformat(timespec="milliseconds")
        who = f"[{self._speaker}] " if self._speaker else ""
        text = f"{moment} {record.levelname} {who}{record.name}: {record.getMessage()}"
        text += "".join(f" {name}={value}" for name, value in self._fields(record).items())
        error = self._error(record)
        if error is not None:
            text += f"\n{error}" if self._debug else f" ({error})"
        text = scrub(text)
        return text if self._debug else text.replace("\n", "\\n")


class JsonFormatter(_Formatter):
    """`{"time": …, "level": …, "logger": …, "message": …}` with the fields beside them."""

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.datetime.fromtimestamp(record.created, datetime.UTC)
        event: dict[str, Any] = {
            "time": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if self._speaker:
            event |= {"connector": self._speaker.connector, "worker": self._speaker.worker}
        event |= {name: value for name, value in self._fields(record).items() if name not in event}
        error = self._error(record)
        if error is not None:
            event["error"] = error
        return json.dumps(scrubbed(event), ensure_ascii=False)
