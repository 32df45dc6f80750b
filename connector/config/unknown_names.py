"""Names that no declaration has: where they belong, or what they were probably meant to be.

In: both documents. Out: problems, or notices where ``config.unknown`` says to ignore them.
"""

from __future__ import annotations

from collections.abc import Mapping

from connector.config.document import Document
from connector.config.findings import Findings
from connector.config.kafka import client_names, is_client_property, is_secret
from connector.config.properties import (
    CONNECTOR,
    CONNECTOR_FAMILIES,
    RENAMED,
    WORKER_BY_NAME,
    WORKER_FAMILIES,
    Effect,
    Family,
    family_of,
)
from connector.config.secret import learn
from connector.suggestions import nearest


def is_worker_name(name: str) -> bool:
    return name in WORKER_BY_NAME or family_of(name, WORKER_FAMILIES) is not None or is_client_property(name)


def unknown_connector_names(document: Document, findings: Findings, lenient: bool) -> None:
    for name in document.texts:
        if name in CONNECTOR:
            continue
        family = family_of(name, CONNECTOR_FAMILIES)
        if family:
            _family_notice(document, name, family, findings)
            continue
        hint = RENAMED.get(name)
        near = nearest(name, CONNECTOR, 0.8)
        if hint is None and near is None and is_worker_name(name):
            text = "Belongs in the worker's file"
            suggestion: str | None = f"move it there, or write producer.override.{name} for the producer alone"
            if name in WORKER_BY_NAME:
                suggestion = "move it there"
        else:
            meant = hint or near or nearest(name, CONNECTOR)
            text, suggestion = "Unknown property", f"did you mean {meant}?" if meant else None
        secret = any(CONNECTOR[near].secret for near in (hint, near) if near)
        _say_unknown(document, name, text, suggestion, findings, lenient, secret)


def unknown_worker_names(document: Document, variables: Mapping[str, str], findings: Findings, lenient: bool) -> None:
    known = [*WORKER_BY_NAME, *sorted(client_names())]
    for name in document.texts:
        if name in WORKER_BY_NAME or is_client_property(name):
            continue
        family = family_of(name, WORKER_FAMILIES)
        if family:
            _family_notice(document, name, family, findings)
            continue
        meant = nearest(name, known)
        if name in CONNECTOR or (meant is None and nearest(name, CONNECTOR, 0.85)):
            _say_unknown(document, name, "Belongs in the connector's file", "move it there", findings, lenient)
        else:
            suggestion = f"did you mean {meant}?" if meant else None
            secret = meant is not None and is_secret(meant)
            _say_unknown(document, name, "Unknown property", suggestion, findings, lenient, secret)
    for name, variable in variables.items():
        meant = nearest(name, WORKER_BY_NAME, 0.85)
        if meant and not lenient:
            right = "CONNECT_" + meant.upper().replace(".", "_")
            place = Document(f"environment variable {variable}")
            findings.problem(place, name, "Unknown property", f"did you mean {right}?")
        else:
            findings.remark(f"environment variable {variable}", "no property of that name, ignored")


def _say_unknown(
    document: Document,
    name: str,
    text: str,
    suggestion: str | None,
    findings: Findings,
    lenient: bool,
    secret: bool = False,
) -> None:
    if secret:
        learn(name, document.texts[name], secret=True)
    if lenient:
        hint = f" ({suggestion})" if suggestion else ""
        findings.notice(document, name, f"{text[0].lower()}{text[1:]}, ignored{hint}")
    else:
        findings.problem(document, name, text, suggestion, secret=secret, known=False)


def _family_notice(document: Document, name: str, family: Family, findings: Findings) -> None:
    if family.effect is Effect.NONE:
        findings.notice(document, name, f"has no effect here: {family.reason}")
