"""How the demo shows that it goes on: a live view on a terminal, plain lines elsewhere, nothing for machines.

In: stages, events, the connector's status. Out: text that fits 60 columns; escape sequences on terminals only.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from connector.cli.output import Output, uses_colour
from connector.worker.status_document import ServiceStatus

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

_BAR = 22


class View:
    """Shows nothing: for `--json`. `stage` begins a part, `event` tells what happened, `look` has the numbers."""

    def __init__(self) -> None:
        self.began = time.monotonic()

    def __enter__(self) -> View:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def stage(self, text: str) -> None:
        self.event(text)

    def event(self, text: str) -> None:
        pass

    def look(self, done: int, rows: int, status: ServiceStatus) -> None:
        pass

    def end(self) -> None:
        """Nothing is drawn anew from here on."""

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began


class PlainView(View):
    """A line for each event, with the seconds since the start."""

    def __init__(self, output: Output) -> None:
        super().__init__()
        self._output = output

    def event(self, text: str) -> None:
        self._output.say(f"{self.seconds:6.1f} s  {text}")


class LiveView(View):
    """Events scroll by; below them the numbers of this moment, drawn anew a few times a second."""

    def __init__(self, console: Console) -> None:
        from rich.live import Live

        super().__init__()
        self._console = console
        self._stage = ""
        self._done = self._rows = 0
        self._status = ServiceStatus()
        self._live = Live(console=console, get_renderable=self._picture, refresh_per_second=5, transient=True)

    def __enter__(self) -> View:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        self._live.stop()

    def stage(self, text: str) -> None:
        self._stage = text
        self.event(text)

    def event(self, text: str) -> None:
        from rich.markup import escape

        self._console.print(f"[dim]{self.seconds:6.1f} s[/dim]  {escape(text)}", highlight=False)

    def look(self, done: int, rows: int, status: ServiceStatus) -> None:
        self._done, self._rows, self._status = done, rows, status

    def _picture(self) -> RenderableType:
        from rich.console import Group
        from rich.rule import Rule
        from rich.spinner import Spinner
        from rich.text import Text

        lines: list[RenderableType] = [Rule(style="dim"), Spinner("dots", Text(self._stage, style="bold"))]
        if self._rows:
            full = _BAR * self._done // self._rows
            bar = Text("━" * full, style="green") + Text("━" * (_BAR - full), style="dim")
            lines.append(Text("written      ") + bar + Text(f" {self._done:,} of {self._rows:,}"))
        for name, (records, lag) in _tables(self._status).items():
            lines.append(Text(f"{name:<12} ") + Text(f"{records:>7,} records, {lag} behind", style="cyan"))
        for worker in self._status.workers:
            slots = "■" * len(worker.slots)
            lines.append(Text(f"worker {worker.index}     {slots:<6} {worker.state.value.lower()}"))
        return Group(*lines)


def _tables(status: ServiceStatus) -> dict[str, tuple[int, str]]:
    found: dict[str, tuple[int, str]] = {}
    for worker in status.workers:
        for name, table in worker.tables.items():
            records, _ = found.get(name, (0, ""))
            found[name] = (records + table.records, "-" if table.lag_ms is None else f"{table.lag_ms / 1000:.1f} s")
    return found


def view_for(output: Output, as_json: bool) -> View:
    if as_json:
        return View()
    if not uses_colour(output.stdout):
        return PlainView(output)
    from rich.console import Console

    return LiveView(Console(file=output.stdout))
