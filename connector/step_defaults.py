"""What a transform takes from the lines of its connector, where its own do not say it.

In: the simple name of a transform's class, its options, and what the connector says. Out: options, before its own. The
connector and the readers of its topics give a transform the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

EXTRACT: Final = "ScyllaExtractNewRecordState"
FLATTEN: Final = "ScyllaFlattenColumns"
SAFE_EXTRACT: Final = "extract-new-state"
#: Debezium's own: the same for envelopes without cells.
DEBEZIUM_EXTRACT: Final = "ExtractNewRecordState"

_READ_IMAGES: Final = frozenset((EXTRACT, SAFE_EXTRACT, FLATTEN, DEBEZIUM_EXTRACT))
#: An option that Java's transform does not have.
_UNTOUCHED: Final = "untouched.fields"


def of_the_connector(
    kind: str | None, given: Mapping[str, str], output_format: str | None = None, strict: bool = False
) -> dict[str, str]:
    """``output_format``: None where it is not said. ``strict``: as Java does it, even where it loses records.

    >>> of_the_connector("extract-new-state", {}, "advanced", strict=True)
    {'cdc.output.format': 'advanced', 'compatibility': 'strict'}
    """
    options = {}
    # Java's transform does not know the connector's format; ours would omit what is null in whole images.
    if output_format is not None and (kind == SAFE_EXTRACT or (kind == EXTRACT and _UNTOUCHED in given)):
        options["cdc.output.format"] = output_format
    if strict and kind in _READ_IMAGES:
        options["compatibility"] = "strict"
    return options
