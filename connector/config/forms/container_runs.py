"""Workers that a script runs in containers: ``docker run -e CONNECT_…``.

In: the text of a script, its variables, where it lies. Out: each worker, with the variables of its command and of the
files that this names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from connector.config.contents import file_content, why_unreadable
from connector.config.env_files import raw_variables
from connector.config.environment import is_debezium_image
from connector.config.forms.script_variables import MADE, ScriptVariables
from connector.config.forms.shell_words import KnownByRunning, expanded, words_of
from connector.config.forms.worker import worker_with_references
from connector.config.forms.wrapped import Wrapped
from connector.config.substitution import reference
from connector.errors import Problem

_RUN = re.compile(r"\b(?:docker|podman|nerdctl)[ \t]+(?:container[ \t]+)?(?:run|create)\b")
#: A command goes on behind a backslash, and in PowerShell behind a backtick.
_LINE = re.compile(r"(?:[^\n\\`]+|\\\r?\n|(?<=[ \t])`\r?\n|[\\`])*")
_GOES_ON = re.compile(r"[\\`]\r?\n")
_OPTION = re.compile(r"(?:(-e|--env)|(--env-file))(?:=|\Z)|(-e)(?=[A-Za-z_])")


def workers_in_containers(text: str, variables: ScriptVariables, folder: Path) -> Iterator[Wrapped]:
    """Of every container that a script runs and that has variables of a worker."""
    for match in _LINE.finditer(text):
        if not _RUN.search(match.group()):
            continue
        words = [*words_of(_GOES_ON.sub(" ", match.group()))]
        image = next((word for word in reversed(words) if is_debezium_image(word)), "")
        run = _Run(variables, match.start(), folder)
        run.take(words)
        content, notes = worker_with_references({**run.of_files, **run.given}, image, run.elsewhere)
        if content:
            yield Wrapped(content, "docker run", notes, run.problems)


@dataclass(slots=True)
class _Run:
    """The variables of a command. Those that are given one by one count over those of its files."""

    known: ScriptVariables
    place: int
    folder: Path
    given: dict[str, str] = field(default_factory=dict)
    of_files: dict[str, str] = field(default_factory=dict)
    elsewhere: dict[str, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def take(self, words: Sequence[str]) -> None:
        for word, following in zip(words, [*words[1:], ""], strict=True):
            option = _OPTION.match(word)
            if option is not None:
                value = word[option.end() :] or following
                self._take_file(value) if option[2] else self._take_variable(value)

    def _take_variable(self, value: str) -> None:
        known = self.known.at(self.place)
        try:
            name, equals, text = expanded(value, known).partition("=")
        except KnownByRunning:
            name = value.partition("=")[0].strip("\"'")
            self.given[name], self.elsewhere[name] = reference(name), MADE
            return
        if equals:
            self.given[name] = text
        elif self.known.is_known(name, self.place):
            self.given[name] = known.text(name)
            if self.known.is_made(name, self.place):
                self.elsewhere[name] = MADE

    def _take_file(self, value: str) -> None:
        known = self.known.at(self.place)
        try:
            path = self.folder / expanded(value, known)
            text = file_content(path).decode("utf-8-sig")
        except (KnownByRunning, OSError, UnicodeDecodeError) as error:
            reason = why_unreadable(error) if isinstance(error, OSError) else "Is not a text that can be found"
            hint = "put it beside the script, or give it as the worker's file"
            self.problems.append(Problem("--env-file", f"{value} cannot be read: {reason}", None, hint))
            return
        variables = raw_variables(text, known)
        if variables is None:
            self.problems.append(Problem("--env-file", f"{path} must hold lines NAME=value alone"))
        self.of_files |= variables or {}
