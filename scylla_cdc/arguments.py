"""What a ``ChangeReader`` is given, checked before anything is connected.

In: arguments as a program writes them. Out: what reading takes; ``CdcError`` that names the argument and says what it
has to be.
"""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from datetime import UTC, datetime
from numbers import Real
from typing import Any

from connector.config import CONNECTION, Invalid, parse_contact_points
from connector.errors import CdcError
from connector.source import ConnectionSettings

#: A moment: a datetime (one without a zone is local time), or milliseconds since 1970.
Moment = datetime | int

_YEAR_2000 = 946_684_800_000
_CONSISTENCY = next(each.kind for each in CONNECTION.properties if each.name == "scylla.consistency.level")


def connection(
    address: str,
    user: str | None,
    password: str | None,
    tls: ssl.SSLContext | None,
    local_dc: str | None,
    consistency: str,
) -> ConnectionSettings:
    if not isinstance(address, str):
        raise CdcError(f"address {address!r}: write host:port as text, several with commas")
    try:
        points = parse_contact_points(address)
    except Invalid as error:
        raise CdcError(f"address {address!r}: {error}") from None
    try:
        level = _CONSISTENCY.parse(str(consistency))
    except Invalid as error:
        raise CdcError(f"consistency {consistency!r}: {error}") from None
    return ConnectionSettings(
        tuple((point.host, point.port) for point in points),
        user=user,
        password=password,
        tls=tls,
        verify_host_name=tls is not None and tls.check_hostname,
        local_dc=local_dc,
        consistency=level.upper(),
    )


def table_names(tables: str | Sequence[str]) -> list[str]:
    names = [tables] if isinstance(tables, str) else list(tables)
    if not names:
        raise CdcError("tables: none is named")
    return names


def checked_confidence(confidence_ms: Any) -> int:
    if isinstance(confidence_ms, bool) or not isinstance(confidence_ms, int) or confidence_ms < 0:
        raise CdcError(f"confidence_ms must be a whole number of milliseconds, not {confidence_ms!r}")
    return confidence_ms


def milliseconds(name: str, moment: Any) -> int | None:
    """A moment in milliseconds since 1970. Seconds are told: with them everything would be read, or nothing."""
    if moment is None:
        return None
    if not isinstance(moment, datetime | Real) or isinstance(moment, bool):
        raise CdcError(f"{name} must be a datetime, or milliseconds since 1970, not {moment!r}")
    try:
        ms = round(moment.timestamp() * 1000 if isinstance(moment, datetime) else float(moment))
    except (ValueError, OverflowError):
        raise CdcError(f"{name} is no time: {moment!r}") from None
    if not isinstance(moment, datetime) and _YEAR_2000 <= ms * 1000 < _YEAR_2000 * 10:
        meant = datetime.fromtimestamp(ms, UTC).isoformat()
        raise CdcError(f"{name} is in milliseconds since 1970; as seconds {moment!r} is {meant}: write {ms * 1000}")
    return ms
