"""Kafka's errors in the product's own words.

In: a ``KafkaError`` of a call or a delivery report. Out: the branch of the exception tree that decides what happens
next (call again, abort and read again, new producer and restore, let the topic's table wait, give up).
"""

from __future__ import annotations

from confluent_kafka import KafkaError

from connector.errors import (
    DeliveryError,
    Disowned,
    FatalDeliveryError,
    ProducerFenced,
    RetriableDeliveryError,
    RightMissing,
    TransactionAborted,
    TransactionsTooLong,
    UnknownOutcome,
)

# Errors that belong to one topic, until somebody mends it: its table waits, the others go on.
TOPIC_ERRORS = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError._UNKNOWN_TOPIC,
        KafkaError.TOPIC_EXCEPTION,
        KafkaError.INVALID_RECORD,
        KafkaError.POLICY_VIOLATION,
    }
)

_ADVICE = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "grant DESCRIBE and WRITE on it",
    KafkaError.UNKNOWN_TOPIC_OR_PART: "create it",
    KafkaError._UNKNOWN_TOPIC: "create it",
    KafkaError.INVALID_RECORD: "look at the topic's settings: a compacted one takes no records without a key",
}

# Rights that a connector needs, and goes on without an end of its own until somebody grants them.
_RIGHTS = {
    # Of any topic: those of positions and status are read as well.
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "grant READ, WRITE and DESCRIBE on the topic",
    # A transaction commits offsets of the group: its producer needs the right as well.
    KafkaError.GROUP_AUTHORIZATION_FAILED: (
        "grant READ on the connector's consumer group, <group.id>-<connector>, to the logins of consumers and producers"
    ),
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: (
        "grant WRITE and DESCRIBE on transactional ids that begin with the connector's name"
    ),
}

_DISK = (
    "the disk that it is on is full or has failed: the broker's log says which; make room, and restart the broker, "
    "which does not look again by itself"
)

# What brokers say in two words that tell neither whose fault it is nor what to do.
_CAUSES = {
    KafkaError.LEADER_NOT_AVAILABLE: f"where that lasts, the brokers that have it are down, or {_DISK}",
    KafkaError.KAFKA_STORAGE_ERROR: _DISK,
    KafkaError.INVALID_TIMESTAMP: (
        "this machine's clock differs from the broker's by more than the topic takes (message.timestamp.after.max.ms, "
        "an hour by default since Kafka 4.0, and message.timestamp.before.max.ms): set the clock right"
    ),
    KafkaError.CONCURRENT_TRANSACTIONS: (
        "its last transaction has not ended yet; where that lasts, a partition that it wrote to, of a topic or of "
        "Kafka's own, takes no record: it has no leader, or fewer replicas in sync than min.insync.replicas, or its "
        "max.message.bytes was less than 78 for a while: raise that, then restart the broker that coordinates the "
        "transaction, which tries no more"
    ),
    KafkaError.INVALID_TRANSACTION_TIMEOUT: (
        "transaction.timeout.ms, 15000 unless the worker's file has another, is more than the brokers' "
        "transaction.max.timeout.ms: lower the one, or raise the other"
    ),
    KafkaError.MSG_SIZE_TOO_LARGE: (
        "records are larger than the topic takes: raise its max.message.bytes (where it has none of its own, "
        "message.max.bytes of the brokers)"
    ),
    KafkaError.RECORD_LIST_TOO_LARGE: "records are larger than a segment of the topic: raise its segment.bytes",
}

# What the client says, in a broker's words, of a record that it does not send.
_UNSENT_CAUSES = {
    KafkaError.MSG_SIZE_TOO_LARGE: (
        "a record is larger than the producer's max.request.size, 1000000 unless the files have another: raise it "
        "(producer.override.max.request.size of the connector, producer.max.request.size of the worker)"
    ),
}

# Errors that say that two machines' clocks are not the same; which of them is wrong a third one tells.
CLOCK_ERRORS = frozenset({KafkaError.INVALID_TIMESTAMP})

# Errors that belong to one record: the batch it stems from is poison.
RECORD_ERRORS = frozenset(
    {KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.INVALID_MSG_SIZE, KafkaError.RECORD_LIST_TOO_LARGE}
)

# A record that counts as delivered and stands nowhere. One that was refused for a moment, as by a broker that has yet
# to learn that it leads the partition, is sent again. Meanwhile those after it may have arrived, and a broker that
# knows nothing of this producer there takes them, whatever should be in front of them. librdkafka calls the first one
# written, too, since a later one is; only an offset it has none of.
SKIPPED = KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER

# Errors that say nothing of the topic that was written to.
NOT_OF_THE_TOPIC = frozenset(
    {
        KafkaError._FATAL,
        KafkaError._STATE,
        KafkaError._FENCED,
        KafkaError.INVALID_PRODUCER_EPOCH,
        KafkaError.PRODUCER_FENCED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        SKIPPED,
    }
)

# The producer object is of no use any more, whatever the transaction's state.
FENCED = frozenset(
    {
        KafkaError._FENCED,
        KafkaError.INVALID_PRODUCER_EPOCH,
        KafkaError.PRODUCER_FENCED,
    }
)

# librdkafka calls only the broker's own words retriable; that nobody answered is, too.
UNREACHABLE = frozenset(
    {
        KafkaError._TIMED_OUT,
        KafkaError._TRANSPORT,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._RESOLVE,
        KafkaError._WAIT_COORD,
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.NETWORK_EXCEPTION,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.NOT_COORDINATOR,
        KafkaError.BROKER_NOT_AVAILABLE,
    }
)

# A partition whose leader has just changed: it answers when the new one has caught up. librdkafka does not call these
# retriable where an admin client asks, Kafka does.
LEADER_CHANGES = frozenset(
    {
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.OFFSET_NOT_AVAILABLE,
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.REPLICA_NOT_AVAILABLE,
        KafkaError.KAFKA_STORAGE_ERROR,
        # Of all partitions that an admin client was asked about none has a leader.
        KafkaError._NOENT,
    }
)

# We have no right to see it.
FORBIDDEN = frozenset({KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED})

# A queue of our own that is full: poll and call again.
BACKPRESSURE = KafkaError._QUEUE_FULL


def of_report(code: int) -> KafkaError:
    """What a report says, if all that it has is a number."""
    if code == SKIPPED:
        return KafkaError(code, "later records of a partition were taken, and not this one")
    return KafkaError(code)


def describe(error: KafkaError, *, unsent: bool = False) -> str:
    """``unsent``: the client says so, and not a broker."""
    text = f"{error.name()}: {error.str()}"
    cause = (_UNSENT_CAUSES if unsent else _CAUSES).get(error.code())
    return text if cause is None else f"{text}; {cause}"


def with_right(error: KafkaError, *, unsent: bool = False) -> str:
    """With the right that is missing, if it is that."""
    right, text = _RIGHTS.get(error.code()), describe(error, unsent=unsent)
    return text if right is None else f"{text.rstrip('.')}; {right}"


def advice(error: KafkaError) -> str:
    """An error that fails a topic, with what to do about it."""
    return f"{describe(error)}; {_ADVICE.get(error.code(), 'look at the topic and its settings')}"


def is_transient(error: KafkaError) -> bool:
    """The same call may succeed a moment later."""
    return error.retriable() or error.code() in UNREACHABLE or error.code() in LEADER_CHANGES


def _fatal(code: int) -> type[FatalDeliveryError]:
    if code == KafkaError.INVALID_TRANSACTION_TIMEOUT:
        return TransactionsTooLong
    return RightMissing if code in _RIGHTS else FatalDeliveryError


def translated(error: KafkaError, doing: str, *, unsent: bool = False) -> DeliveryError:
    """The exception for ``error``; ``doing`` says in two or three words what failed."""
    text = f"{doing}: {with_right(error, unsent=unsent)}"
    fatal = _fatal(error.code())
    if error.code() in FENCED:
        return ProducerFenced(text)
    if error.code() == KafkaError._FATAL:
        # The echo of a fatal error that was told elsewhere: this producer is of no use any more, whatever it was.
        return UnknownOutcome(text)
    if error.fatal():
        return fatal(text)
    if error.code() == KafkaError.UNKNOWN_MEMBER_ID:
        return Disowned(text)
    if error.txn_requires_abort():
        return TransactionAborted(text)
    if is_transient(error):
        return RetriableDeliveryError(text)
    return fatal(text)
