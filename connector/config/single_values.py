"""Converters of single values are for what a transform has taken out of a struct: said before the first record fails.

In: the converters and transforms of a connector. Out: problems and notices.
"""

from __future__ import annotations

from collections.abc import Sequence

from connector.config.converters import ConverterConfig
from connector.config.document import Document
from connector.config.findings import Findings
from connector.config.transforms import TransformSpec

_STRUCTURED = ("json", "avro")


def check_single_values(
    document: Document,
    key: ConverterConfig,
    value: ConverterConfig,
    transforms: Sequence[TransformSpec],
    findings: Findings,
) -> None:
    """Keys and values are structs unless a transform of that side makes something else of them."""
    for which, converter in (("key", key), ("value", value)):
        named = f"{which}.converter"
        side = f"${which.capitalize()}"
        if converter.kind in _STRUCTURED or any(spec.type.endswith(side) for spec in transforms):
            continue
        if converter.kind == "string":
            text = f"writes Java's toString() of structs, which no consumer reads back: no transform changes {which}s"
            findings.notice(document, named, text)
        else:
            problem = f"It takes single values, and {which}s are structs"
            findings.problem(document, named, problem, f"a transform such as ExtractField{side} takes a field out")
