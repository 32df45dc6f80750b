"""Names that no declaration has: misspellings, names of the other file, names of other connectors, names of nobody.

In: both documents. Out: problems for names that are nearly known ones; notices for all others, which Kafka Connect
ignores too. ``config.unknown`` makes all of them problems, or all of them notices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache

from connector.config.document import Document
from connector.config.findings import Findings
from connector.config.kafka import client_names, is_client_property, is_secret
from connector.config.leniency import Unknown, is_refused
from connector.config.misspelt import misspelt, misspelt_family
from connector.config.properties import (
    CONNECTOR,
    CONNECTOR_FAMILIES,
    CONNECTOR_SECTIONS,
    RENAMED,
    WORKER_BY_NAME,
    WORKER_FAMILIES,
    WORKER_SECTIONS,
    Effect,
    Family,
    Section,
    family_of,
    neighbour_of,
)
from connector.config.secret import learn
from connector.config.topic_creation import TOPIC_SETTINGS
from connector.suggestions import nearest

#: Of so many names of a file that nobody knows it is asked which ones were meant; that takes some time for each.
MOST_GUESSED = 1_000
_LIKE_CONNECT = "as in Kafka Connect"
_LOG4J = "has no effect here: levels of loggers are set by --debug, and by PUT /admin/loggers"


def is_worker_name(name: str) -> bool:
    return _is_of_worker(name) or family_of(name, WORKER_FAMILIES) is not None


def unknown_connector_names(document: Document, findings: Findings, unknown: Unknown) -> None:
    names = _to_be_guessed(document, CONNECTOR.__contains__, CONNECTOR_FAMILIES, _not_of_connector, findings, unknown)
    for name, elsewhere in names:
        meant = misspelt_family(name, _working(CONNECTOR_FAMILIES))
        if meant:
            elsewhere = None
        elif not elsewhere:
            meant = RENAMED.get(name) or misspelt(name, *_by_effect(CONNECTOR_SECTIONS))
        loosely = meant or RENAMED.get(name) or nearest(name, CONNECTOR, 0.8)
        if loosely in CONNECTOR and CONNECTOR[loosely].secret:
            learn(name, document.texts[name], secret=True)
        _say(document, name, elsewhere, meant, findings, unknown, loosely or nearest(name, CONNECTOR))


def _to_be_guessed(
    document: Document,
    is_known: Callable[[str], bool],
    families: tuple[Family, ...],
    elsewhere: Callable[[str], str | None],
    findings: Findings,
    unknown: Unknown,
) -> Iterator[tuple[str, str | None]]:
    """Names that nobody declares and that may be meant for others, with what they are ``elsewhere``. Those that are too
    many are said as they stand."""
    guessed = 0
    for name in document.texts:
        if is_known(name):
            continue
        family = family_of(name, families)
        if family:
            # Of `topic.creation.…` one is no group's, but the worker's.
            of_worker = elsewhere(name) if name in WORKER_BY_NAME else None
            if of_worker:
                findings.notice(document, name, of_worker)
            else:
                _family_notice(document, name, family, findings)
            continue
        guessed += 1
        if guessed <= MOST_GUESSED:
            yield name, elsewhere(name)
            continue
        if is_secret(name):
            learn(name, document.texts[name], secret=True)
        _say(document, name, elsewhere(name), None, findings, unknown, None)


def _not_of_connector(name: str) -> str | None:
    """What a name that is known means in a connector's file, where it means nothing."""
    if name in WORKER_BY_NAME or family_of(name, WORKER_FAMILIES):
        hint = "offsets.storage.topic is the connector's own" if name == "offset.storage.topic" else "move it there"
        return f"belongs in the worker's file, and has no effect in a connector's, {_LIKE_CONNECT} ({hint})"
    if is_client_property(name):
        hint = f"move it there, or write producer.override.{name} for the producer alone"
        return f"belongs in the worker's file, and has no effect in a connector's, {_LIKE_CONNECT} ({hint})"
    neighbour = neighbour_of(name)
    if neighbour:
        return f"has no effect here: {neighbour.reason}"
    if name in TOPIC_SETTINGS:
        return f"has no effect here, {_LIKE_CONNECT}: a setting of topics is topic.creation.default.{name}"
    return None


@cache
def _by_effect(sections: tuple[Section, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of properties that work, and of those without effect."""
    declared = [one for section in sections for one in section.properties]
    return tuple(one.name for one in declared if one.effect is Effect.WORKS), tuple(
        one.name for one in declared if one.effect is Effect.NONE
    )


@cache
def _working(families: tuple[Family, ...]) -> tuple[str, ...]:
    return tuple(family.prefix for family in families if family.effect is Effect.WORKS)


def unknown_worker_names(
    document: Document, variables: Mapping[str, str], findings: Findings, unknown: Unknown
) -> None:
    working, idle = _by_effect(WORKER_SECTIONS)
    clients = tuple(sorted(client_names()))
    names = _to_be_guessed(document, _is_of_worker, WORKER_FAMILIES, _not_of_worker, findings, unknown)
    for name, elsewhere in names:
        meant = misspelt_family(name, _working(WORKER_FAMILIES))
        if not elsewhere and not meant:
            meant = misspelt(name, (*working, *clients), idle)
        loosely = meant or nearest(name, (*working, *idle, *clients))
        if loosely and is_secret(loosely):
            learn(name, document.texts[name], secret=True)
        _say(document, name, elsewhere, meant, findings, unknown, loosely)
    for name, variable in variables.items():
        meant = misspelt(name, working, idle)
        if meant and unknown != "ignore":
            right = "CONNECT_" + meant.upper().replace(".", "_")
            place = Document(f"environment variable {variable}")
            findings.problem(place, name, "Unknown property", f"did you mean {right}?")
        else:
            text = _LOG4J if name.startswith("log4j.") else _not_of_worker(name) or "no property of that name, ignored"
            findings.remark(f"environment variable {variable}", text, warn=unknown == "warn")


def _is_of_worker(name: str) -> bool:
    return name in WORKER_BY_NAME or is_client_property(name)


def _not_of_worker(name: str) -> str | None:
    """What a name that is known means in a worker's file, where it means nothing."""
    if name in CONNECTOR and CONNECTOR[name].effect is Effect.NONE:
        return f"has no effect here: {CONNECTOR[name].reason}"
    if name in CONNECTOR or family_of(name, CONNECTOR_FAMILIES):
        return f"belongs in the connector's file, and has no effect in a worker's, {_LIKE_CONNECT}"
    return None


def _say(
    document: Document,
    name: str,
    elsewhere: str | None,
    meant: str | None,
    findings: Findings,
    unknown: Unknown,
    loosely: str | None,
) -> None:
    secret = loosely is not None and (is_secret(loosely) or (loosely in CONNECTOR and CONNECTOR[loosely].secret))
    if is_refused(unknown, meant):
        text = f"{elsewhere[0].upper()}{elsewhere[1:]}" if elsewhere else "Unknown property"
        suggestion = f"did you mean {meant or loosely}?" if (meant or loosely) and not elsewhere else None
        findings.problem(document, name, text, suggestion, secret=secret and bool(meant), known=False)
    elif elsewhere:
        findings.notice(document, name, elsewhere)
    else:
        hint = f" (did you mean {meant}?)" if meant else f", {_LIKE_CONNECT}"
        findings.notice(document, name, f"unknown property, ignored{hint}", warn=unknown == "warn")


def _family_notice(document: Document, name: str, family: Family, findings: Findings) -> None:
    if family.effect is Effect.NONE:
        findings.notice(document, name, f"has no effect here: {family.reason}")
