"""The record formats by their names in ``cdc.output.format``: the one place where a name becomes a format."""

from __future__ import annotations

from typing import assert_never

from connector.config import OutputFormat
from connector.formats.advanced import ADVANCED
from connector.formats.legacy import LEGACY
from connector.formats.record_format import RecordFormat


def record_format(name: OutputFormat) -> RecordFormat:
    match name:
        case "legacy":
            return LEGACY
        case "advanced":
            return ADVANCED
        case _:
            assert_never(name)
