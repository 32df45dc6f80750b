"""What checks of a configuration have found, of one server or of all of them.

In: nothing. Out: problems by what they mean for who starts, each with the property that it is about.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from connector.errors import Problem
from connector.table_name import TableName

ADDRESSES = "scylla.cluster.ip.addresses"

KAFKA = "bootstrap.servers"

GROUP = "group.id"


@dataclass(slots=True)
class Findings:
    """``missing``: tables that are not there, or have no CDC. ``unreachable``: nobody answered, so nothing is known.
    ``awaited``: some table's records wait until it is mended, and others go on. ``refused``: the login was, by one that
    is ``unreachable`` for it. ``warnings``: true, but no reason to refuse."""

    problems: list[Problem] = field(default_factory=list)
    missing: dict[TableName, Problem] = field(default_factory=dict)
    unreachable: list[Problem] = field(default_factory=list)
    awaited: list[Problem] = field(default_factory=list)
    refused: bool = False
    warnings: list[str] = field(default_factory=list)
