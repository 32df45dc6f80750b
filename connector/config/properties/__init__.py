"""Every property, declared once: its kind, default, text and effect, and the catalogue of all of them.

In: nothing. Out: declarations that loading, validation and the reference page read.
"""

from __future__ import annotations

from connector.config.properties.address import (
    BROKERS,
    TABLE_NAMES,
    ContactPoint,
    parse_contact_points,
    parse_table_names,
)
from connector.config.properties.catalogue import (
    CONNECTOR,
    CONNECTOR_FAMILIES,
    CONNECTOR_SECTIONS,
    RENAMED,
    WORKER_BY_NAME,
    WORKER_FAMILIES,
    WORKER_SECTIONS,
    family_of,
    idle_reason,
)
from connector.config.properties.connection import CONNECTION, OTHER_SNAPSHOT_MODES, READING
from connector.config.properties.framework import CONNECTOR_CLASS
from connector.config.properties.http import HTTP
from connector.config.properties.kind import (
    BOOLEAN,
    INT_MAX,
    LIST,
    LONG_MAX,
    PASSWORD,
    STRING,
    Invalid,
    Kind,
    integer,
    java_pattern,
    one_of,
)
from connector.config.properties.neighbours import NEIGHBOURS, Neighbour, neighbour_of
from connector.config.properties.output import DEFAULT_PLACEMENT, OUTPUT, OUTPUT_FORMATS, OutputFormat, of_deltas
from connector.config.properties.property import Effect, Family, Property, Section, without_effect

__all__ = [
    "BOOLEAN",
    "BROKERS",
    "CONNECTION",
    "CONNECTOR",
    "CONNECTOR_CLASS",
    "CONNECTOR_FAMILIES",
    "CONNECTOR_SECTIONS",
    "DEFAULT_PLACEMENT",
    "HTTP",
    "INT_MAX",
    "LIST",
    "LONG_MAX",
    "NEIGHBOURS",
    "OTHER_SNAPSHOT_MODES",
    "OUTPUT",
    "OUTPUT_FORMATS",
    "PASSWORD",
    "READING",
    "RENAMED",
    "STRING",
    "TABLE_NAMES",
    "WORKER_BY_NAME",
    "WORKER_FAMILIES",
    "WORKER_SECTIONS",
    "ContactPoint",
    "Effect",
    "Family",
    "Invalid",
    "Kind",
    "Neighbour",
    "OutputFormat",
    "Property",
    "Section",
    "family_of",
    "idle_reason",
    "integer",
    "java_pattern",
    "neighbour_of",
    "of_deltas",
    "one_of",
    "parse_contact_points",
    "parse_table_names",
    "without_effect",
]
