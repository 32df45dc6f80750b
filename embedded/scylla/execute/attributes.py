"""USING TIMESTAMP and TTL: what a statement's cells are written with.

In: the clause's tree and the table with its default TTL. Out: a function that sets a run's timestamp, TTL and
expiry.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from connector.values import decode, native
from embedded.scylla.cql.tree import Attributes, Term
from embedded.scylla.errors import InvalidRequest
from embedded.scylla.execute.run import Fixed, Run
from embedded.scylla.execute.terms import Scope, compile_term
from embedded.scylla.results import UNSET
from embedded.scylla.schema import Table

MAX_TTL = 20 * 365 * 24 * 3600
_FARTHEST_US = 3 * 86_400 * 1_000_000
# What stands for none in ScyllaDB.
_NO_TIMESTAMP = -(1 << 63)


def compile_attributes(attributes: Attributes, table: Table, scope: Scope) -> Callable[[Run, int | None], None]:
    """Sets the run's timestamp and TTL for this statement; `batch` is the timestamp of the BATCH around it."""
    timestamp = (
        compile_term(attributes.timestamp, "[timestamp]", native("bigint"), scope)
        if attributes.timestamp is not None
        else None
    )
    ttl = compile_term(attributes.ttl, "[ttl]", native("int"), scope) if attributes.ttl is not None else None
    if attributes.timeout is not None:
        compile_timeout(attributes.timeout, scope)
    default = table.default_time_to_live
    if timestamp is None and ttl is None and not default:
        return _plain

    def prepare(run: Run, batch: int | None) -> None:
        _plain(run, batch)
        if timestamp is not None:
            raw = timestamp(run)
            if raw is None:
                raise InvalidRequest("Invalid null value of timestamp")
            if raw is not UNSET:
                run.timestamp = int.from_bytes(cast(bytes, raw), "big", signed=True)
                if run.timestamp == _NO_TIMESTAMP:
                    raise InvalidRequest(
                        f"Out of bound timestamp, must be in [{_NO_TIMESTAMP + 1}, {-_NO_TIMESTAMP - 1}]"
                    )
        seconds = default if ttl is None else _seconds(ttl(run), default)
        if seconds:
            run.ttl, run.expiry = seconds, run.now_s + seconds

    return prepare


def refuse_far_future(timestamp: int, now_us: int) -> None:
    """ScyllaDB looks at the timestamps that single statements and batches give in their text, not at those of
    statements in a batch, nor at those of the protocol."""
    if timestamp - now_us > _FARTHEST_US:
        raise InvalidRequest(
            "Cannot provide a timestamp more than 3 days into the future. If this was not intended, make sure the "
            "timestamp is in microseconds. You can also disable this check by setting the restrict_future_timestamp "
            "configuration option to false."
        )


def compile_timeout(timeout: Term, scope: Scope) -> None:
    """Checks a timeout, which this server has no use for; one that is bound is not looked at."""
    compiled = compile_term(timeout, "[timeout]", native("duration"), scope)
    if not isinstance(compiled, Fixed):
        return
    if compiled.value is None:
        raise InvalidRequest("Timeout value cannot be null")
    months, days, nanoseconds = decode(native("duration"), compiled.value)
    if months or days:
        raise InvalidRequest("Timeout values cannot be expressed in days/months")
    if nanoseconds % 1_000_000:
        raise InvalidRequest("Timeout values cannot have granularity finer than milliseconds")
    if nanoseconds < 0:
        raise InvalidRequest("Timeout values must be non-negative")


def _plain(run: Run, batch: int | None) -> None:
    run.ttl = run.expiry = 0
    if batch is not None:
        run.timestamp = batch
        return
    given = run.context.default_timestamp
    run.timestamp = run.ticker.micros() if given is None else given


def _seconds(raw: object, default: int) -> int:
    if raw is UNSET:
        return default
    # Null and zero both mean that nothing expires, even against the table's default.
    if raw is None:
        return 0
    ttl = int.from_bytes(cast(bytes, raw), "big", signed=True)
    if ttl < 0:
        raise InvalidRequest("A TTL must be greater or equal to 0")
    if ttl > MAX_TTL:
        raise InvalidRequest(f"ttl is too large. requested ({ttl}) maximum ({MAX_TTL})")
    return ttl
