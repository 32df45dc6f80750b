"""A client quota slows delivery down; it loses nothing and aborts nothing."""

from __future__ import annotations

import socket
import struct
import time

import pytest
from confluent_kafka import ThrottleEvent

from connector.delivery.records import OutgoingRecord
from connector.delivery.throttling import OF_NOW_SECONDS, Throttling
from tests.delivery.conftest import World, mark
from tests.servers.patience import until

ALTER_CLIENT_QUOTAS = 49


def limit(bootstrap: str, client_id: str, bytes_per_second: float) -> None:
    """What `kafka-configs.sh --alter --entity-type clients` sends; no Python client has it."""

    def text(value: str) -> bytes:
        return struct.pack(">h", len(value)) + value.encode()

    entity = struct.pack(">i", 1) + text("client-id") + text(client_id)
    change = struct.pack(">i", 1) + text("producer_byte_rate") + struct.pack(">d?", bytes_per_second, False)
    body = struct.pack(">i", 1) + entity + change + b"\0"
    request = struct.pack(">hhi", ALTER_CLIENT_QUOTAS, 0, 1) + text("test") + body
    host, port = bootstrap.split(":")
    with socket.create_connection((host, int(port)), timeout=90) as connection:
        connection.sendall(struct.pack(">i", len(request)) + request)
        with connection.makefile("rb") as answers:
            answer = answers.read(struct.unpack(">i", answers.read(4))[0])
    throttle, entries, error = struct.unpack_from(">iih", answer, 4)
    assert (entries, error) == (1, 0), (throttle, answer)


@pytest.mark.kafka
def test_a_quota_only_slows_down(world: World) -> None:
    # Brokers hold back for what 600,000 bytes take, less the ten or eleven seconds that they look at: four at least, if
    # the commits take no longer than that.
    limit(world.bootstrap, "slow", 40_000.0)
    membership, _ = world.member("slow", session_timeout_ms=45_000)
    delivery = world.delivery(membership, "slow", transaction_timeout_ms=30_000)
    began = time.monotonic()
    for at in range(6):
        delivery.add(0, [OutgoingRecord(world.data, f"{at}-{each}".encode(), b"x" * 20_000) for each in range(5)])
        delivery.commit([mark(0, "slow")])
    assert (delivery.commits, delivery.aborts) == (6, 0)
    until(lambda: len(world.read(world.data)) == 30, what="all records")
    # 600,000 bytes at 40,000 a second, of which the first windows of the quota let some pass.
    assert time.monotonic() - began > 2.0
    # Whatever takes long meanwhile says so; for how long brokers hold back is theirs to say.
    assert "s (producer_byte_rate, consumer_byte_rate or request_percentage)" in (delivery.connection_error or "")


@pytest.mark.parametrize(("throttled", "told"), [(0.9, False), (12.4, True)])
def test_a_quota_that_holds_somebody_up_is_told_as_long_as_it_does(throttled: float, told: bool) -> None:
    now = 100.0
    throttling = Throttling(lambda: now)
    throttling.heard(ThrottleEvent("10.0.0.1", 1, throttled))
    said = "a quota: 10.0.0.1 has held an answer back for 12 s"
    assert (throttling.cause or "").startswith(said) is told and bool(throttling.cause) is told
    now += OF_NOW_SECONDS
    assert throttling.cause is None
