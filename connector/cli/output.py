"""Where commands put their results: for people, or as JSON for machines (`--json`), behind one `Output`.

Results go to stdout, everything about how it goes (narration excepted) to stderr. A command calls the same methods in
both cases and never asks which one it is talking to. Everything passes the filter of `connector.secrets`, apart from
`record`: rows of tables are never changed.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import IO, Any

from connector.errors import CdcError, Problem
from connector.secrets import scrub, scrubbed

log = logging.getLogger(__name__)

_UNKNOWN = 10_000


class OutputError(CdcError):
    """A result that could not be written where it was to go."""


class Output(ABC):
    """One method per kind of thing a command has to tell."""

    def __init__(self, stdout: IO[str] | None = None, stderr: IO[str] | None = None) -> None:
        self.stdout = stdout if stdout is not None else sys.stdout
        self.stderr = stderr if stderr is not None else sys.stderr

    @abstractmethod
    def say(self, text: str) -> None:
        """A line of narration: what is being done. For people only."""

    @abstractmethod
    def result(self, value: Mapping[str, Any], text: str) -> None:
        """The command's result: `text` for people, `value` for machines. The last thing on stdout."""

    @abstractmethod
    def table(self, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """A result of many rows; for machines a list of objects."""

    @abstractmethod
    def problems(self, problems: Sequence[Problem]) -> None:
        """Everything that is wrong with the user's files or options."""

    @abstractmethod
    def error(self, message: str) -> None:
        """Why the command failed."""

    def note(self, text: str) -> None:
        """Something to be known before it begins, on stderr for people and machines alike."""
        with contextlib.suppress(OutputError):
            _write_line(self.stderr, f"note: {scrub(text)}")

    def record(self, value: Mapping[str, Any]) -> None:
        """One object of a stream of results: a JSON line for people and machines alike, written at once."""
        _write_line(self.stdout, to_json(value))

    def progress(self, label: str) -> Progress:
        """Tells how long work goes on; shown only to people at a terminal."""
        return Progress(label, self.stderr if self.shows_progress else None)

    @property
    def shows_progress(self) -> bool:
        return False


class ConsoleOutput(Output):
    """For people. Colours only on a terminal, and never against `NO_COLOR`.

    What is wrong is said as far as stderr takes it; the exit status says it as well.
    """

    def say(self, text: str) -> None:
        # A full disk takes the words of a job that goes on for months, not the job.
        with contextlib.suppress(OutputError):
            _write_line(self.stdout, scrub(text))

    def result(self, value: Mapping[str, Any], text: str) -> None:
        _write_line(self.stdout, scrub(text))

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        cells = [[scrub(_cell(value)) for value in row] for row in rows]
        widths = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
        lines = [_styled(_padded(columns, widths), "1", self.stdout), *(_padded(row, widths) for row in cells)]
        _write_line(self.stdout, "\n".join(lines))

    def problems(self, problems: Sequence[Problem]) -> None:
        mark = _styled("error:", "1;31", self.stderr)
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        lines = [f"{mark} {count}", *(f"  {_indented(str(problem))}" for problem in problems)]
        with contextlib.suppress(OutputError):
            _write_line(self.stderr, scrub("\n".join(lines)))

    def error(self, message: str) -> None:
        with contextlib.suppress(OutputError):
            _write_line(self.stderr, f"{_styled('error:', '1;31', self.stderr)} {scrub(message)}")

    @property
    def shows_progress(self) -> bool:
        return self.stderr.isatty()


class CollectedOutput(ConsoleOutput):
    """For people whose log lines are collected as JSON: why a command ends is the one that nobody may miss."""

    def problems(self, problems: Sequence[Problem]) -> None:
        for problem in problems:
            log.error("%s", problem)

    def error(self, message: str) -> None:
        log.error("%s", message)

    def note(self, text: str) -> None:
        log.info("%s", text)


class JsonOutput(Output):
    """For machines: one JSON document per line on stdout."""

    def say(self, text: str) -> None:
        pass

    def result(self, value: Mapping[str, Any], text: str) -> None:
        _write_line(self.stdout, to_json(scrubbed(value)))

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        _write_line(self.stdout, to_json(scrubbed([dict(zip(columns, row, strict=True)) for row in rows])))

    def problems(self, problems: Sequence[Problem]) -> None:
        found = [scrubbed(problem_json(item)) for item in problems]
        try:
            _write_line(self.stdout, to_json({"valid": False, "problems": found}))
        except OutputError:
            self._at_least.problems(problems)

    def error(self, message: str) -> None:
        try:
            _write_line(self.stdout, to_json({"error": scrub(message)}))
        except OutputError:
            self._at_least.error(message)

    @property
    def _at_least(self) -> Output:
        """Where stdout takes nothing, whoever reads it gets nothing; who looks after it may read stderr."""
        return ConsoleOutput(self.stdout, self.stderr)


class Progress:
    """A line at the terminal that is rewritten at most ten times a second and gone in the end."""

    def __init__(self, label: str, terminal: IO[str] | None) -> None:
        self._label = label
        self._terminal = terminal
        self._shown = 0.0

    def update(self, done: int | str, total: int | None = None) -> None:
        now = time.monotonic()
        if self._terminal is not None and now - self._shown >= 0.1:
            self._shown = now
            text = f"{self._label}: {done}" + (f" of {total}" if total is not None else "")
            self._terminal.write(f"\r\x1b[K{scrub(text)[: columns_of(self._terminal)]}")
            self._terminal.flush()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._terminal is not None and self._shown:
            self._terminal.write("\r\x1b[K")
            self._terminal.flush()


def columns_of(terminal: IO[str]) -> int:
    """How wide a line may be that is to be wiped again: of one that wraps, only its end is. Wide if unknown."""
    try:
        columns = os.get_terminal_size(terminal.fileno()).columns
    except OSError:
        columns = 0
    return columns - 1 if columns > 0 else _UNKNOWN


def problem_json(problem: Problem) -> dict[str, str | None]:
    return {
        "file": problem.file,
        "property": problem.property,
        "value": problem.value,
        "problem": problem.problem,
        "suggestion": problem.suggestion,
    }


def to_json(value: Any) -> str:
    """One line; what JSON does not know is written as its text."""
    return json.dumps(value, ensure_ascii=False, separators=(", ", ": "), default=str)


def uses_colour(stream: IO[str]) -> bool:
    """Colours are for terminals, and `NO_COLOR` set to anything switches them off."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _styled(text: str, code: str, stream: IO[str]) -> str:
    return f"\x1b[{code}m{text}\x1b[0m" if uses_colour(stream) else text


def _padded(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()


def _cell(value: Any) -> str:
    return "" if value is None else str(value)


def _indented(text: str) -> str:
    return text.replace("\n", "\n    ")


def _escaped(text: str, encoding: str) -> str:
    """Where letters are no more than ASCII, say: the others as JSON escapes them, so that it stays JSON if it is."""

    def shown(letter: str) -> str:
        try:
            letter.encode(encoding)
        except UnicodeEncodeError:
            return json.dumps(letter)[1:-1]
        return letter

    return "".join(map(shown, text))


def _write_line(stream: IO[str], text: str) -> None:
    try:
        try:
            stream.write(f"{text}\n")
        except UnicodeEncodeError as error:
            stream.write(f"{_escaped(text, error.encoding)}\n")
        stream.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(f"what is printed cannot be written: {error.strerror or error}") from None
