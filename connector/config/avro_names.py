"""Names of schemas that Avro will refuse in every record, found in the files alone.

In: the connector's parsed values and its converters. Out: problems, added to the findings. Names of columns are known
to ScyllaDB only, where `validate` and `run` look at them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from connector.config.connector_config import names_of
from connector.config.converters import ConverterConfig
from connector.config.document import Document
from connector.config.findings import Findings
from connector.config.transforms import REGEX_ROUTER, TransformSpec

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def check_avro_names(
    document: Document,
    values: Mapping[str, Any],
    converters: Sequence[ConverterConfig],
    transforms: Sequence[TransformSpec],
    findings: Findings,
) -> None:
    """The names that all of a table's schemas begin with; transforms may give schemas other names. ``converters``: of
    keys and of values."""
    key_name = "cdc.include.primary-key.payload-key-name"
    placed = values["cdc.output.format"] == "advanced" and "payload-key" in values["cdc.include.primary-key.placement"]
    if placed and converters[-1].kind == "avro" and not _NAME.fullmatch(values[key_name]):
        findings.problem(
            document, key_name, "Avro does not allow the name, with which every record would be refused", "key"
        )
    strict = [one for one in converters if one.kind == "avro" and not one.scrub_names and one.schema_names == "none"]
    if not strict or any(step.type != REGEX_ROUTER for step in transforms):
        return
    names = names_of(values)
    of_prefix = _wrong_parts(names.schema_base("k", "t"))
    owners = [("topic.prefix", of_prefix)]
    owners += [
        ("scylla.table.names", wrong[len(of_prefix) :])
        for table in values["scylla.table.names"]
        if (wrong := _wrong_parts(names.schema_base(table.keyspace, table.name)))
    ]
    for owner, wrong in owners:
        for part in dict.fromkeys(wrong):
            findings.problem(
                document,
                owner,
                f"Avro does not allow the name {part!r}, with which every record would be refused",
                "scrub.invalid.names=true on the AvroConverter, or schema.name.adjustment.mode=avro",
            )


def _wrong_parts(name: str) -> list[str]:
    return [part for part in name.split(".") if not _NAME.fullmatch(part)]
