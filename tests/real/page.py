"""The result of a run against somebody's cluster, as one page of Markdown and as JSON.

In: what was found about the server, and the outcomes of tests as the plugin reports them. Out: `Result`.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

_EXCERPT = 600


@dataclass(frozen=True)
class Outcome:
    """One test, or one part of the run that is no test: `held`, `differed`, `skipped`, `left out`."""

    group: str
    name: str
    verdict: str
    reason: str = ""
    seconds: float = 0.0


_VERDICTS = {"passed": "held", "failed": "differed", "skipped": "skipped", "left out": "left out"}


def outcomes(lines: Iterable[str]) -> list[Outcome]:
    """From the JSON lines of `--scylla-report`; what fails twice (a test, then its end) counts once.

    >>> outcomes(['{"nodeid": "tests/source/a.py::b", "group": "reader", "outcome": "passed", "seconds": 1.5}'])
    [Outcome(group='reader', name='tests/source/a.py::b', verdict='held', reason='', seconds=1.5)]
    """
    found: dict[str, Outcome] = {}
    for line in lines:
        told = json.loads(line)
        name, verdict = told["nodeid"], _VERDICTS[told["outcome"]]
        if (before := found.get(name)) is not None and before.verdict == "differed":
            continue
        found[name] = Outcome(told["group"], name, verdict, told.get("reason", ""), told.get("seconds", 0.0))
    return list(found.values())


@dataclass
class Result:
    """All that the page tells."""

    version: str
    cluster: str
    date: str
    of: str
    seconds: float = 0.0
    able: Sequence[str] = ()
    missing: dict[str, str] = field(default_factory=dict)
    outcomes: list[Outcome] = field(default_factory=list)
    # What kept the run from its end, and what it could not clean up.
    remarks: list[str] = field(default_factory=list)
    finished: bool = True

    def those(self, verdict: str) -> list[Outcome]:
        return [each for each in self.outcomes if each.verdict == verdict]

    @property
    def held(self) -> bool:
        """Whether the run came to its end, something was looked at, and nothing differed."""
        return self.finished and bool(self.those("held")) and not self.those("differed")

    def document(self) -> dict[str, Any]:
        """For machines."""
        return {
            "version": self.version,
            "cluster": self.cluster,
            "date": self.date,
            "scylla_cdc": self.of,
            "seconds": round(self.seconds),
            "held": self.held,
            "finished": self.finished,
            "cannot": dict(self.missing),
            "groups": {name: dict(counts) for name, counts in self.groups().items()},
            "differed": [{"name": each.name, "excerpt": each.reason} for each in self.those("differed")],
            "skipped": [{"name": each.name, "reason": each.reason} for each in self.those("skipped")],
            "left_out": [{"name": each.name, "reason": each.reason} for each in self.those("left out")],
            "remarks": list(self.remarks),
        }

    def groups(self) -> dict[str, dict[str, int]]:
        counts: dict[str, dict[str, int]] = defaultdict(lambda: dict.fromkeys(_VERDICTS.values(), 0))
        for each in self.outcomes:
            counts[each.group][each.verdict] += 1
        return counts

    def markdown(self) -> str:
        verdict = "All that was looked at held." if self.held else "Not all of it held, or the run was cut short."
        lines = [
            f"# scylla-cdc on ScyllaDB {self.version}",
            "",
            f"{self.date}, {duration(self.seconds)}. {self.cluster}. scylla-cdc {self.of}. {verdict}",
            "",
            "| group | held | differed | skipped | left out |",
            "|---|---|---|---|---|",
        ]
        for group, counts in self.groups().items():
            lines.append(f"| {group} | " + " | ".join(str(counts[each]) for each in _VERDICTS.values()) + " |")
        lines += ["", *(f"{remark}\n" for remark in self.remarks)]
        lines += ["## What differed", ""]
        for each in self.those("differed"):
            lines += [f"- `{each.name}`", "", *(f"      {line}" for line in excerpt(each.reason)), ""]
        lines += [] if self.those("differed") else ["Nothing.", ""]
        lines += ["## What was skipped", ""]
        lines += [f"- cannot be done here: {name}: {why}" for name, why in self.missing.items()]
        lines += by_reason(self.those("skipped"))
        lines += [] if self.missing or self.those("skipped") else ["Nothing."]
        lines += ["", "## What was left out: only the embedded ScyllaDB plays it", ""]
        lines += by_reason(self.those("left out"))
        lines += [] if self.those("left out") else ["Nothing."]
        return "\n".join(lines).rstrip() + "\n"


def by_reason(some: Iterable[Outcome]) -> list[str]:
    """One line for each reason, with the tests that it concerns."""
    names: dict[str, list[str]] = defaultdict(list)
    for each in some:
        name = each.name.rpartition("/")[2].partition("[")[0]
        if name not in names[each.reason]:
            names[each.reason].append(name)
    return [f"- {reason}: {', '.join(f'`{name}`' for name in found)}" for reason, found in names.items()]


def excerpt(text: str) -> list[str]:
    """The beginning of a failure.

    >>> excerpt("assert 1 == 2\\n\\nwhere")
    ['assert 1 == 2', 'where']
    """
    cut = text if len(text) <= _EXCERPT else text[:_EXCERPT] + " …"
    return [line for line in cut.splitlines() if line.strip()] or ["(no words)"]


def duration(seconds: float) -> str:
    """
    >>> duration(59), duration(3700)
    ('59 s', '61 min 40 s')
    """
    whole = round(seconds)
    return f"{whole} s" if whole < 60 else f"{whole // 60} min {whole % 60} s"
