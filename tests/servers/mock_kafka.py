"""Kafka as librdkafka plays it for its own tests: a broker that refuses as many records as it is told to, or several.

In: topics. Out: ``bootstrap_servers``, a leader that does not know yet that it is one, or none, coordinators that move.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import POINTER, c_char_p, c_int, c_int16, c_int32, c_size_t, c_void_p
from typing import Any

from confluent_kafka import KafkaError, cimpl

_PRODUCER = 0
_PRODUCE = 0
_ONLY_BROKER = 1


class MockKafka:
    def __init__(self, library: ctypes.CDLL, cluster: c_void_p) -> None:
        self._library, self._cluster = library, cluster
        bootstrap = _function(library, "rd_kafka_mock_cluster_bootstraps", c_char_p, c_void_p)
        self.bootstrap_servers: str = bootstrap(cluster).decode()

    def create(self, topic: str) -> None:
        create = _function(self._library, "rd_kafka_mock_topic_create", c_int, c_void_p, c_char_p, c_int, c_int)
        assert not create(self._cluster, topic.encode(), 1, 1)

    def answer_after(self, milliseconds: int) -> None:
        slow = _function(self._library, "rd_kafka_mock_broker_set_rtt", c_int, c_void_p, c_int32, c_int)
        assert not slow(self._cluster, _ONLY_BROKER, milliseconds)

    def leave_leaderless(self, topic: str) -> None:
        """Its only partition has no leader."""
        lead = _function(
            self._library, "rd_kafka_mock_partition_set_leader", c_int, c_void_p, c_char_p, c_int32, c_int32
        )
        assert not lead(self._cluster, topic.encode(), 0, -1)

    def coordinate(self, transactional_id: str, broker: int) -> None:
        """From now on it is this broker, counted from 1."""
        moved = _function(self._library, "rd_kafka_mock_coordinator_set", c_int, c_void_p, c_char_p, c_char_p, c_int32)
        assert not moved(self._cluster, b"transaction", transactional_id.encode(), broker)

    def refuse_records(self, requests: int) -> None:
        """So many of the next requests with records, as a leader that does not know yet that it is one."""
        self._answer_records(requests, KafkaError.NOT_LEADER_FOR_PARTITION)

    def end_connections(self, requests: int) -> None:
        """Instead of an answer to so many of the next requests with records."""
        self._answer_records(requests, KafkaError._TRANSPORT)

    def _answer_records(self, requests: int, code: int) -> None:
        push = _function(
            self._library, "rd_kafka_mock_push_request_errors_array", None, c_void_p, c_int16, c_size_t, POINTER(c_int)
        )
        push(self._cluster, _PRODUCE, requests, (c_int * requests)(*[code] * requests))


@contextmanager
def mock_kafka(brokers: int = 1) -> Iterator[MockKafka]:
    library = ctypes.CDLL(cimpl.__file__)
    configuration = _function(library, "rd_kafka_conf_new", c_void_p)()
    set_ = _function(library, "rd_kafka_conf_set", c_int, c_void_p, c_char_p, c_char_p, c_char_p, c_size_t)
    set_(configuration, b"log_level", b"0", None, 0)
    client = _function(library, "rd_kafka_new", c_void_p, c_int, c_void_p, c_char_p, c_size_t)(
        _PRODUCER, configuration, None, 0
    )
    cluster = _function(library, "rd_kafka_mock_cluster_new", c_void_p, c_void_p, c_int)(client, brokers)
    try:
        yield MockKafka(library, cluster)
    finally:
        _function(library, "rd_kafka_mock_cluster_destroy", None, c_void_p)(cluster)
        _function(library, "rd_kafka_destroy", None, c_void_p)(client)


def _function(library: ctypes.CDLL, name: str, result: Any, *arguments: Any) -> Any:
    function = getattr(library, name)
    function.restype, function.argtypes = result, arguments
    return function
