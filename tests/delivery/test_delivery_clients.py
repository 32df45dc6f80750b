"""Where Kafka is and why it is not reached; and whose lost connections mean that it was away."""

from __future__ import annotations

import contextlib
import importlib
import itertools
import logging
import socket
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError
from confluent_kafka.admin import AdminClient

from connector.delivery import Delivery, DeliverySettings, TransactionalProducer, clients, groups
from connector.delivery.client_log import Heard, QuietLog
from connector.delivery.clients import READ_COMMITTED, KafkaClients
from connector.delivery.connection_health import ConnectionHealth, connection_cause
from connector.delivery.failures import LEADER_CHANGES, translated
from connector.delivery.membership import Membership
from connector.delivery.topic_facts import topic_partitions
from connector.errors import RetriableDeliveryError
from embedded import ports
from tests.servers.patience import until

# The room's name for its module is a function's.
restoring = importlib.import_module("connector.delivery.restore")


def test_consumers_have_a_short_queue_unless_their_configuration_names_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "Consumer", dict)
    common = {"bootstrap.servers": "h:1"}
    made: Any = KafkaClients(common).consumer("g", READ_COMMITTED)
    assert (made["queued.min.messages"], made["queued.max.messages.kbytes"]) == (2_000, 1_024)
    made = KafkaClients(common, consumer_properties={"queued.min.messages": 7}).consumer("g", READ_COMMITTED)
    assert (made["queued.min.messages"], made["queued.max.messages.kbytes"]) == (7, 1_024)


@pytest.mark.parametrize(
    ("session", "configured", "answer"),
    [(10_000, None, 5_000), (300, None, 3_000), (45_000, 40_000, 10_000), (9_000, 100, 100)],
)
def test_a_member_does_not_wait_for_a_broker_that_hangs_when_another_may_know_the_coordinator(
    monkeypatch: pytest.MonkeyPatch, session: int, configured: int | None, answer: int
) -> None:
    monkeypatch.setattr(clients, "Consumer", dict)
    given = KafkaClients({}, consumer_properties={"socket.timeout.ms": configured} if configured else {})
    member: Any = Membership(given, "offsets", "g", "w", slots=1, session_timeout_ms=session).client
    assert member["socket.timeout.ms"] == answer


@pytest.mark.parametrize(
    ("code", "said", "shown"),
    [
        (
            KafkaError._TRANSPORT,
            "10.0.0.7:9092/bootstrap: Connect to ipv4#10.0.0.7:9092 failed: Connection refused (after 0ms in "
            "state CONNECT)",
            "10.0.0.7:9092: connection refused",
        ),
        (
            KafkaError._RESOLVE,
            "broker.invalid:9092/bootstrap: Failed to resolve 'broker.invalid:9092': Name or service not known "
            "(after 4ms in state CONNECT)",
            "broker.invalid:9092: the name does not resolve",
        ),
        (
            KafkaError._AUTHENTICATION,
            "sasl_plaintext://h:9092/bootstrap: SASL authentication error: Authentication failed: Invalid username or "
            "password (after 5ms in state AUTH_REQ)",
            "h:9092: SASL authentication error: Authentication failed: Invalid username or password",
        ),
        (
            KafkaError._TRANSPORT,
            "ssl://[::1]:9092/1: Disconnected (after 5ms in state UP)",
            "[::1]:9092: the connection was closed",
        ),
        (
            KafkaError._TRANSPORT,
            "ssl://h:9092/bootstrap: SSL handshake failed: Disconnected: SSL connection closed by peer: connecting to "
            "a PLAINTEXT broker listener? (after 20ms in state SSL_HANDSHAKE)",
            "h:9092: the connection was closed: TLS may not be spoken there (security.protocol)",
        ),
        (
            KafkaError._TRANSPORT,
            "ssl://h:9092/1: Disconnected: SSL connection closed by peer (after 9000ms in state UP)",
            "h:9092: the connection was closed",
        ),
        (
            KafkaError._SSL,
            "ssl://h:9092/bootstrap: SSL handshake failed: error:0A00010B:SSL routines::wrong "
            "version number (after 2ms)",
            "h:9092: TLS is not spoken there (security.protocol)",
        ),
        (
            KafkaError._TRANSPORT,
            "h:9092/bootstrap: Disconnected while requesting ApiVersion: might be caused by incorrect "
            "security.protocol configuration (connecting to a SSL listener?) or broker version is < 0.10",
            "h:9092: the connection was closed: TLS may be wanted there (security.protocol)",
        ),
        (
            KafkaError._BAD_MSG,
            "h:9042/bootstrap: Receive failed: Invalid response size -2080374720 (0..100000000): increase "
            "receive.message.max.bytes (after 6ms in state APIVERSION_QUERY)",
            "h:9042: what answers there is not Kafka, or wants TLS (security.protocol)",
        ),
        (
            KafkaError._TIMED_OUT,
            "h:80/bootstrap: ApiVersionRequest failed: Local: Timed out: probably due to broker version < 0.10 (see "
            "api.version.request configuration) (after 10013ms in state APIVERSION_QUERY)",
            "h:80: connected, and no answer: does it hang, or is this not its port?",
        ),
        (
            KafkaError._AUTHENTICATION,
            "sasl_plaintext://h:9092/bootstrap: SASL PLAIN mechanism handshake failed: Broker: Request not valid in "
            "current SASL state: broker's supported mechanisms:  (after 4ms in state AUTH_HANDSHAKE)",
            "h:9092: it takes no login there (security.protocol)",
        ),
        (KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down", "_ALL_BROKERS_DOWN: 1/1 brokers are down"),
        # What a broker says of a token that has expired, while the server of tokens gives none.
        (
            KafkaError._AUTHENTICATION,
            'sasl_ssl://h:9092/1: SASL authentication error: {"status":"invalid_token"} (after 3ms in state AUTH_REQ)',
            'h:9092: the token was refused ({"status":"invalid_token"}): it has expired, and the server of tokens '
            "(sasl.oauthbearer.token.endpoint.url) gave none since, or the broker takes none of that server",
        ),
        # That server answered with 429, and nothing beside.
        (
            KafkaError._AUTHENTICATION,
            "Failed to acquire SASL OAUTHBEARER token: Server did not provide an error string",
            "_AUTHENTICATION: Failed to acquire SASL OAUTHBEARER token: the server of tokens "
            "(sasl.oauthbearer.token.endpoint.url) answers with an error of HTTP, and says nothing beside",
        ),
    ],
)
def test_the_cause_of_a_lost_connection_in_plain_words(code: int, said: str, shown: str) -> None:
    assert connection_cause(KafkaError(code, said)) == shown


def test_that_all_brokers_are_down_does_not_hide_why() -> None:
    health = ConnectionHealth()
    health.failed(KafkaError(KafkaError._TRANSPORT, "h:1/bootstrap: Connect to ipv4#h:1 failed: Connection refused"))
    health.failed(KafkaError(KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down"))
    assert health.error == "h:1: connection refused"


def test_what_a_broker_says_of_an_old_token_does_not_hide_why_there_is_no_other() -> None:
    health = ConnectionHealth()
    refused = KafkaError(
        KafkaError._AUTHENTICATION, 'sasl_ssl://h:1/1: SASL authentication error: {"status":"invalid"}'
    )
    health.failed(refused)
    assert health.error is not None and "invalid" in health.error
    away = "Failed to acquire SASL OAUTHBEARER token: Failed to connect to login.example.com:443"
    health.failed(KafkaError(KafkaError._AUTHENTICATION, away))
    health.failed(refused)
    assert health.error is not None and "login.example.com" in health.error
    assert health.refusal == health.error
    health.succeeded()
    health.failed(refused)
    assert health.error is not None and "invalid" in health.error


@pytest.mark.parametrize(
    ("code", "said", "refused"),
    [
        (
            KafkaError._AUTHENTICATION,
            "sasl_ssl://h:1/bootstrap: SASL authentication error: Authentication failed",
            True,
        ),
        (
            KafkaError._SSL,
            "ssl://h:1/bootstrap: SSL handshake failed: error:0A000086:SSL routines::verify failed",
            True,
        ),
        # TLS 1.3: the handshake is over by the time that the broker has looked at the certificate.
        (
            KafkaError._TRANSPORT,
            "ssl://h:1/bootstrap: Receive failed: error:0A000415:SSL routines::sslv3 alert certificate expired",
            True,
        ),
        (KafkaError._TRANSPORT, "ssl://h:1/bootstrap: Connect to ipv4#h:1 failed: Connection refused", False),
        (KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down", False),
    ],
)
def test_a_refused_login_is_told_from_a_broker_that_is_away(
    code: int, said: str, refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    health = ConnectionHealth()
    assert health.refusal is None
    health.failed(KafkaError(code, said))
    assert (health.refusal == health.error) is refused
    health.succeeded()  # another client, whose connection stands
    assert (health.refusal is not None) is refused
    monkeypatch.setattr("connector.delivery.connection_health.SAYS_AGAIN_SECONDS", 0.0)
    assert health.refusal is None, "nobody has said so again"


def test_only_a_client_that_lasts_notices_an_outage() -> None:
    """One that is made for a moment may find the first address of a name dead: that says nothing of the others."""
    address = f"127.0.0.1:{ports.free_port()}"
    clients = KafkaClients({"bootstrap.servers": address})
    reader = clients.consumer("g", READ_COMMITTED)
    moment, lasting = clients.producer(), clients.producer(lasting=True)
    try:
        until(lambda: clients.health.error is not None, step=lambda: (reader.poll(0.05), moment.poll(0.05)))
        moment.poll(1)
        reader.poll(1)
        assert clients.health.outages == 0
        until(lambda: clients.health.outages > 0, step=lambda: lasting.poll(0.05))
    finally:
        reader.close()


def test_a_client_is_listened_to_while_nothing_is_written() -> None:
    """A worker without slots begins no transaction: while Kafka was away its producer kept each line of its log, and
    went through all of them for the next one."""
    clients = KafkaClients({"bootstrap.servers": f"127.0.0.1:{ports.free_port()}"})
    anybody: Any = None
    hours = itertools.count(0.0, 3600.0)
    delivery = Delivery(clients, DeliverySettings("shop", "offsets", "w"), anybody, clock=lambda: next(hours))
    delivery.listen()
    delivery._producer = TransactionalProducer(clients, "w", 60_000, lasting=True)
    try:
        until(lambda: clients.health.outages > 0, step=delivery.listen)
    finally:
        delivery.close()


@contextlib.contextmanager
def curt() -> Iterator[str]:
    """A server that takes connections and ends them."""

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                taken.append(listening.accept()[0])
                taken.pop(0).close()

    taken: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=serve, daemon=True).start()
        yield f"127.0.0.1:{listening.getsockname()[1]}"
        listening.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize("wish", [{"log_level": 3}, {"log_level": "0"}, {"log.connection.close": "false"}])
def test_a_connection_that_ends_is_heard_of_whatever_is_to_be_logged(
    wish: dict[str, object], caplog: pytest.LogCaptureFixture
) -> None:
    with curt() as address, caplog.at_level(logging.DEBUG, "connector.kafka"):
        clients = KafkaClients({"bootstrap.servers": address}, wish)
        heard = Heard()
        client = clients.producer(heard=heard)
        until(lambda: heard.lost, step=lambda: client.poll(0.05))
    assert "Disconnected" not in caplog.text


def test_a_call_that_finds_no_kafka_says_which_and_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("connector.delivery.listing.CALL_SECONDS", 1.0)
    address = f"127.0.0.1:{ports.free_port()}"
    clients = KafkaClients({}, {}, {}, {"bootstrap.servers": address})
    admin = clients.admin()

    def said() -> str:
        with pytest.raises(RetriableDeliveryError) as caught, clients.named():
            topic_partitions(admin)
        return str(caught.value)

    # On a busy machine the client may not even have tried to connect when a call has had its time.
    until(lambda: said().startswith(f"Kafka at {address}: {address}: connection refused"), what="why it is not there")


@pytest.mark.parametrize("code", sorted({KafkaError.OFFSET_NOT_AVAILABLE, *LEADER_CHANGES}))
def test_a_partition_that_changes_its_leader_is_asked_again(code: int) -> None:
    assert isinstance(translated(KafkaError(code), "asking"), RetriableDeliveryError)


@pytest.mark.parametrize("asked", ["members", "present"])
def test_a_group_nobody_tells_of_is_given_up_before_the_library_gives_up(
    asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """librdkafka may abort the process where such a question runs out of the time that the library has for it."""
    given: list[float] = []
    real = AdminClient.describe_consumer_groups
    now = 0.0

    def describe(admin: AdminClient, groups: list[str], request_timeout: float) -> dict[str, Any]:
        nonlocal now
        now += 1
        given.append(request_timeout)
        return dict(real(admin, groups, request_timeout=request_timeout))

    monkeypatch.setattr(AdminClient, "describe_consumer_groups", describe)
    for module in (groups, restoring):
        monkeypatch.setattr(module, "CALL_SECONDS", 0.2)
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now, sleep=lambda _: None))
    with socket.create_server(("127.0.0.1", 0)) as mute:
        clients = KafkaClients({"bootstrap.servers": f"127.0.0.1:{mute.getsockname()[1]}"})
        with pytest.raises(RetriableDeliveryError, match=r"describing consumer group g: .*answer"):
            if asked == "members":
                groups.group_members(clients, ["g"], patience=2)
            else:
                restoring.present_members(clients, "g", deadline=2)
    assert len(given) == 2 and min(given) > 60, "asked again, and never near the end of the library's patience"


@pytest.mark.parametrize(
    "cause, level",
    [("Coordinator load in progress", "DEBUG"), ("Transactional Id authorization failed", "WARNING")],
    ids=["it has just begun", "a right is missing"],
)
def test_a_coordinator_that_begins_is_nothing_to_warn_of(
    cause: str, level: str, caplog: pytest.LogCaptureFixture
) -> None:
    """`validate` on a new broker says that all is valid: nothing beside it may look as if it were not."""
    said = f"[thrd:main]: Failed to acquire transactional PID from broker TxnCoordinator/1: Broker: {cause}: retrying"
    with caplog.at_level(logging.DEBUG, "connector.kafka"):
        QuietLog().log(logging.WARNING, "%s [%s] %s", "GETPID", "a-validate#producer-3", said)
    assert [(each.levelname, said in each.getMessage()) for each in caplog.records] == [(level, True)]
