"""The table formats that landing can write, by the name that the configuration gives them (``sink``).

In: a configuration, or parts of one. Out: its ``TableFormat``. Only here the formats are listed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from connector.errors import ConfigurationError, Problem
from spark_jobs.sinks import delta, iceberg_published
from spark_jobs.sinks.sink import TableFormat

DEFAULT = delta.FORMAT.name
FORMATS: Mapping[str, TableFormat] = {form.name: form for form in (delta.FORMAT, iceberg_published.FORMAT)}


def table_format(config: Mapping[str, Any]) -> TableFormat:
    """The format of the configured warehouse."""
    name = str(config.get("sink", DEFAULT))
    if name not in FORMATS:
        raise ConfigurationError([Problem("sink", f"Must be one of {', '.join(FORMATS)}", name)])
    return FORMATS[name]
