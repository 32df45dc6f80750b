"""Which converter each of keys, values and headers gets: the connector's where its file names one, else the worker's.

In: both documents. Out: the three converters in force and the worker's two, None where there were problems.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from connector.config.converters import (
    SIMPLE_CLASS,
    ConverterConfig,
    ConverterKind,
    build_converter,
    converter_kind,
    header_converter_kind,
    options_of,
    subject_strategy,
)
from connector.config.document import Document
from connector.config.findings import Findings
from connector.config.misspelt import misspelt
from connector.config.properties import Effect, Invalid
from connector.config.registry import objections
from connector.config.secret import learn
from connector.suggestions import nearest

_DEFAULT_CLASS = "JsonConverter"
#: What Confluent's converters know beyond the options that are declared here: it cannot be had, so it is not ignored.
_OF_THE_REGISTRY = (
    *("proxy.", "bearer.auth.", "basic.auth.", "schema.", "use.", "context.", "reference.", "rule", "subject."),
    *("auto.", "normalize.", "avro.", "key.subject.", "value.subject.", "id.", "connect.", "json.", "propagate."),
)
_PLUGIN_VERSION = "plugin.version"
#: Where Java's name is another one.
_CALLED = {"simple": "SimpleHeader", "bytes": "ByteArray"}
_WITH_OPTIONS: tuple[ConverterKind, ...] = ("json", "avro", "string")

Chosen = ConverterConfig | None


def choose_converters(
    connector: Document, worker: Document, findings: Findings
) -> tuple[Chosen, Chosen, Chosen, Chosen, Chosen]:
    """(key, value, header) in force, then the worker's own (key, value)."""
    in_force: list[Chosen] = []
    of_worker: list[Chosen] = []
    for which in ("key", "value", "header"):
        named = f"{which}.converter"
        if named in connector.texts:
            chosen = _read(which, connector, worker.texts, findings)
            in_force.append(chosen)
            # The worker's is not used: what is wrong with it does not matter, as in Kafka Connect.
            of_worker.append(_read(which, worker, worker.texts, Findings()) or chosen)
            continue
        own = _read(which, worker, worker.texts, findings)
        of_worker.append(own)
        in_force.append(own)
        for name in connector.texts:
            if name.startswith(f"{named}.") and name != f"{named}.{_PLUGIN_VERSION}":
                findings.notice(
                    connector,
                    name,
                    f"has no effect without {named}: as in Kafka Connect, the worker's converter is used as it is",
                )
    return in_force[0], in_force[1], in_force[2], of_worker[0], of_worker[1]


def with_name_modes(chosen: Chosen, values: Mapping[str, Any]) -> Chosen:
    """With the connector's modes of adjusting names, which Java's connector does not look at."""
    if chosen is None or chosen.kind != "avro" or values["scylla.compatibility"] == "strict":
        return chosen
    return replace(
        chosen,
        field_names=values["field.name.adjustment.mode"],
        schema_names=values["schema.name.adjustment.mode"],
    )


def _read(which: str, document: Document, inherited: Mapping[str, str], findings: Findings) -> Chosen:
    named = f"{which}.converter"
    before = len(findings.problems)
    if named in document.broken:
        return None
    try:
        kind = _kind(which, document.texts.get(named))
    except Invalid as invalid:
        findings.problem(document, named, invalid.problem, invalid.suggestion)
        return None
    declared = options_of(kind)
    given = {
        name[len(named) + 1 :]: text
        for name, text in document.texts.items()
        if name.startswith(f"{named}.") and name != f"{named}.{_PLUGIN_VERSION}"
    }
    values: dict[str, Any] = {one.name: one.default for one in declared.values()}
    for option, text in given.items():
        name, one = f"{named}.{option}", declared.get(option)
        if one is None:
            _unknown_option(document, name, option, kind, set(declared), findings)
            continue
        if name in document.broken:
            continue
        try:
            values[one.name] = one.kind.parse(text)
            if one.name in ("key.subject.name.strategy", "value.subject.name.strategy"):
                subject_strategy(text)
        except Invalid as invalid:
            findings.problem(document, name, invalid.problem, invalid.suggestion, secret=one.secret)
            continue
        if one.effect is Effect.NONE:
            findings.notice(document, name, f"has no effect here: {one.reason}")
    for one in set(declared.values()):
        if one.required and not given.get(one.name, "").strip():
            name = f"{named}.{one.name}"
            beside = f"the worker's options do not count beside the connector's {named}: repeat them, or leave it out"
            hint = beside if name in inherited and name not in document.texts else "http://127.0.0.1:8081"
            findings.problem(document, name, one.required, hint)
    if kind == "avro":
        for wrong in objections(given, inherited):
            findings.problem(document, f"{named}.{wrong.option}", wrong.problem, wrong.suggestion, secret=wrong.secret)
    broken = any(f"{named}.{option}" in document.broken for option in given)
    return build_converter(kind, which, values, inherited) if len(findings.problems) == before and not broken else None


def _kind(which: str, text: str | None) -> ConverterKind:
    if which == "header":
        return header_converter_kind(SIMPLE_CLASS if text is None else text)
    return converter_kind(_DEFAULT_CLASS if text is None else text)


def _unknown_option(document: Document, name: str, option: str, kind: str, known: set[str], findings: Findings) -> None:
    if any(option in options_of(other) for other in _WITH_OPTIONS) or option == "converter.type":
        # Converters are often changed without clearing the other's options; Kafka Connect ignores them.
        findings.notice(
            document, name, f"has no effect: it is no option of the {_CALLED.get(kind, kind.capitalize())}Converter"
        )
        return
    meant = misspelt(option, tuple(sorted(known))) or nearest(option, known)
    if not meant and not option.startswith(_OF_THE_REGISTRY):
        findings.notice(document, name, "unknown option of the converter, ignored, as in Kafka Connect")
        return
    hint = f"did you mean {name.removesuffix(option)}{meant}?" if meant else None
    secret = meant is not None and options_of("avro")[meant].secret if meant in options_of("avro") else False
    if secret:
        learn(name, document.texts[name], secret=True)
    findings.problem(document, name, "Unknown option of the converter", hint, secret=secret, known=False)
