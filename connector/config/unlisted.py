"""Settings of transforms, predicates and groups of topics that their list does not name: taken out of it, or misspelt.

In: the connector's document, its lists. Out: findings. Kafka Connect does not look at any of these.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from connector.config.document import Document
from connector.config.findings import Findings
from connector.config.leniency import Unknown, is_refused
from connector.config.properties import WORKER_BY_NAME
from connector.suggestions import did_you_mean

#: By the list: how its members' settings begin, and who needs not be named.
_MEMBERS: Final = {
    "predicates": ("predicates.", ()),
    "transforms": ("transforms.", ()),
    "topic.creation.groups": ("topic.creation.", ("default",)),
}


def check_unlisted(document: Document, values: Mapping[str, Any], findings: Findings) -> None:
    for list_name, (prefix, unnamed) in _MEMBERS.items():
        if list_name in document.broken:
            continue
        names = (*(values.get(list_name) or ()), *unnamed)
        # A name may have dots of its own.
        settings = tuple(f"{prefix}{name}." for name in names)
        for given in document.texts:
            of_another = given == list_name or given in WORKER_BY_NAME
            if given.startswith(prefix) and not of_another and not f"{given}.".startswith(settings):
                _say(document, given, prefix, list_name, names, values["config.unknown"], findings)


def _say(
    document: Document,
    given: str,
    prefix: str,
    list_name: str,
    names: tuple[str, ...],
    unknown: Unknown,
    findings: Findings,
) -> None:
    name, _, setting = given.removeprefix(prefix).partition(".")
    meant = did_you_mean(name, names, before=prefix, behind=f".{setting}")
    if is_refused(unknown, meant):
        hint = meant or f"add {name} to {list_name}"
        findings.problem(document, given, f"`{list_name}` names no '{name}'", hint)
    else:
        text = f"has no effect, as in Kafka Connect: `{list_name}` names no '{name}'"
        findings.notice(document, given, text, warn=unknown == "warn")
