"""Transactional producer, offsets topic, claims, topics, dead letters. Interprets no rows."""

from __future__ import annotations

from connector.delivery.asked_once import patiently
from connector.delivery.batches import LARGEST_BATCH
from connector.delivery.blocked_partitions import blocked_partitions
from connector.delivery.clients import READ_COMMITTED, READ_UNCOMMITTED, KafkaClients, LastingLogin, no_bulk_client
from connector.delivery.dead_letters import DeadLetter, dead_letter_record
from connector.delivery.failures import (
    CLOCK_ERRORS,
    NOT_OF_THE_TOPIC,
    RECORD_ERRORS,
    TOPIC_ERRORS,
    advice,
    describe,
    translated,
)
from connector.delivery.follow import Follower
from connector.delivery.groups import GroupMember, group_members, listed_groups
from connector.delivery.hanging_transactions import Field, Unseen
from connector.delivery.lasting_topic import LastingTopic
from connector.delivery.lookout import Lookout
from connector.delivery.membership import Membership
from connector.delivery.named_tables import NamedTables, named_tables
from connector.delivery.partition_ends import partition_ends
from connector.delivery.producer import ReportingProducer
from connector.delivery.records import (
    KafkaRecord,
    OutgoingRecord,
    compact_json,
    decode_offsets_entry,
    encode_offsets_key,
    parse_json,
    record_size,
)
from connector.delivery.release import broker_release, cluster_id
from connector.delivery.restore import end_left_open, present_members, read_committed, restore
from connector.delivery.rights import group_refusal, topic_refusals, transaction_refusal
from connector.delivery.slot_reader import RestoredSlot
from connector.delivery.small_topic import SmallTopic
from connector.delivery.standing import Standing
from connector.delivery.topic_facts import TopicFacts, TopicSpec, partitions_of, topic_partitions
from connector.delivery.topic_reader import StoredRecord, ends_of_topic, read_tail, read_topic, scan_partition
from connector.delivery.topics import (
    CheckedTopics,
    SeenTopic,
    check_topics,
    ensure_topics,
    look_at_topic,
    prepare_topics,
    seen_topics,
)
from connector.delivery.transaction import Delivery, DeliverySettings
from connector.delivery.transactional_producer import TransactionalProducer, fence

__all__ = [
    "CLOCK_ERRORS",
    "LARGEST_BATCH",
    "NOT_OF_THE_TOPIC",
    "READ_COMMITTED",
    "READ_UNCOMMITTED",
    "RECORD_ERRORS",
    "TOPIC_ERRORS",
    "CheckedTopics",
    "DeadLetter",
    "Delivery",
    "DeliverySettings",
    "Field",
    "Follower",
    "GroupMember",
    "KafkaClients",
    "KafkaRecord",
    "LastingLogin",
    "LastingTopic",
    "Lookout",
    "Membership",
    "NamedTables",
    "OutgoingRecord",
    "ReportingProducer",
    "RestoredSlot",
    "SeenTopic",
    "SmallTopic",
    "Standing",
    "StoredRecord",
    "TopicFacts",
    "TopicSpec",
    "TransactionalProducer",
    "Unseen",
    "advice",
    "blocked_partitions",
    "broker_release",
    "check_topics",
    "cluster_id",
    "compact_json",
    "dead_letter_record",
    "decode_offsets_entry",
    "describe",
    "encode_offsets_key",
    "end_left_open",
    "ends_of_topic",
    "ensure_topics",
    "fence",
    "group_members",
    "group_refusal",
    "listed_groups",
    "look_at_topic",
    "named_tables",
    "no_bulk_client",
    "parse_json",
    "partition_ends",
    "partitions_of",
    "patiently",
    "prepare_topics",
    "present_members",
    "read_committed",
    "read_tail",
    "read_topic",
    "record_size",
    "restore",
    "scan_partition",
    "seen_topics",
    "topic_partitions",
    "topic_refusals",
    "transaction_refusal",
    "translated",
]
