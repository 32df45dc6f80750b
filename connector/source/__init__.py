"""All that talks to ScyllaDB: connection, descriptions, stream sets, paged log reads. Knows no Kafka."""

from __future__ import annotations

from connector.source.added_again import ask_all
from connector.source.background import GRACE_SECONDS, Background, Failing, Purpose, Task, explained, instant
from connector.source.base_rows import BaseQuery, TokenRange, base_query, dealt, read_keys, ring_tokens, token_ranges
from connector.source.chores import ChoreDone, Chores
from connector.source.connection import Connection
from connector.source.consumer import Postponed
from connector.source.contact_points import useless_points
from connector.source.datacenters import OF_ROWS, loose_datacenter
from connector.source.describing import Describing
from connector.source.descriptions import DescribedTable
from connector.source.from_config import connection_settings, reading_settings, snapshot_settings
from connector.source.horizon import NOT_READ, Expired, expired
from connector.source.late_changes import LateChanges
from connector.source.log_reader import ReadEvent
from connector.source.pages import Row
from connector.source.phantom_rows import SecondLooks, scan
from connector.source.read_changes import PATIENCE_SECONDS, ChangeReader
from connector.source.reading import Reading
from connector.source.schema_versions import describe_base, describe_table, describe_tables
from connector.source.server_clock import ServerClock
from connector.source.server_release import server_release
from connector.source.settings import ConnectionSettings, ReadingSettings, SnapshotSettings
from connector.source.snapshots import Snapshots
from connector.source.stream_sets import StreamSets, TabletStreams, VnodeGenerations
from connector.source.tables import Tables
from connector.source.unread import Unread
from connector.source.watch import STREAM_SETS, Watch

__all__ = [
    "GRACE_SECONDS",
    "NOT_READ",
    "OF_ROWS",
    "PATIENCE_SECONDS",
    "STREAM_SETS",
    "Background",
    "BaseQuery",
    "ChangeReader",
    "ChoreDone",
    "Chores",
    "Connection",
    "ConnectionSettings",
    "DescribedTable",
    "Describing",
    "Expired",
    "Failing",
    "LateChanges",
    "Postponed",
    "Purpose",
    "ReadEvent",
    "Reading",
    "ReadingSettings",
    "Row",
    "SecondLooks",
    "ServerClock",
    "SnapshotSettings",
    "Snapshots",
    "StreamSets",
    "Tables",
    "TabletStreams",
    "Task",
    "TokenRange",
    "Unread",
    "VnodeGenerations",
    "Watch",
    "ask_all",
    "base_query",
    "connection_settings",
    "dealt",
    "describe_base",
    "describe_table",
    "describe_tables",
    "expired",
    "explained",
    "instant",
    "loose_datacenter",
    "read_keys",
    "reading_settings",
    "ring_tokens",
    "scan",
    "server_release",
    "snapshot_settings",
    "token_ranges",
    "useless_points",
]
