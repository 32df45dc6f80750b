"""Every exception the product raises on purpose, in one tree.

Callers catch a branch, never a driver's or a client library's own class: the rooms that talk to the outside
translate foreign errors into these at their border.

    CdcError
    ├── ConfigurationError      wrong files or options; carries *all* problems (exit status 2)
    │   └── UsageError          wrong command line (exit status 2)
    ├── SourceError             ScyllaDB's side
    │   ├── RetriableSourceError    timeouts, overload, lost connections: try again, with back-off
    │   │   └── ReplicasAway            too few of those who hold what was asked for are there
    │   └── FatalSourceError        will not go away by itself
    │       ├── TableMissing            the table or its log does not exist (any more)
    │       ├── CdcDisabled             the table exists, its log does not or is not written
    │       ├── AccessDenied            login refused or rights missing
    │       └── UnsupportedServer       the server lacks what reading needs (too old, wrong layout)
    ├── DeliveryError           Kafka's side
    │   ├── RetriableDeliveryError  try again, with back-off
    │   ├── TransactionAborted      the open transaction must be aborted and its records read again
    │   │   └── Disowned                the consumer group does not know us, and our client may not know that
    │   ├── TooLate                 what had to be in Kafka by a certain time was not: abort, and search again
    │   ├── ProducerFenced          another process took over our transactional id: new producer, restore, go on
    │   ├── UnknownOutcome          a commit was sent and its outcome is not known: restore before going on
    │   ├── ForeignGroup            another consumer group runs this connector, or another offsets topic is used
    │   └── FatalDeliveryError      e.g. authorisation failed, message too large
    │       ├── RightMissing            to the consumer group, transactional ids, a topic: until somebody grants it
    │       ├── TransactionsTooLong     our transactions may last longer than brokers allow
    │       ├── ClockSetBack            what this process commits would look older than what it has committed
    │       ├── ClockIsWrong            Kafka takes nothing of this machine, whose clock is hours away from others'
    │       ├── Stranded                a client reaches nobody any more, where a new one reaches somebody
    │       └── LoginRefused            a Schema Registry, or who gives out tokens for it, refuses us
    ├── StillRunning            what asks for a connector's workers to have ended came too early: try again
    ├── LostClaim               the group took a slot away; nothing read for it may be delivered
    ├── PoisonRow               a log row (or batch) that can never be decoded or encoded
    │   └── PoisonRecord            one of the records of a change cannot be made; carries the others
    ├── LandingError            Spark's side: a table that cannot be landed, a lease that is held
    └── EmbeddedError           an embedded server cannot be started or kept
        └── JavaMissing             no usable Java, and no wheel that brings one
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self


class CdcError(Exception):
    """Root of the tree: an error whose message is meant for the user, without a traceback."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with a configuration.

    ``file`` names the file (or ``environment``, ``command line``, ``server``) it was found in, ``suggestion`` is what
    would be right or the likely intended spelling. ``value`` is already masked when the property is a secret.
    """

    property: str
    problem: str
    value: str | None = None
    suggestion: str | None = None
    file: str | None = None

    def __str__(self) -> str:
        place = f"{self.file}: " if self.file else ""
        shown = "" if self.value is None else f" = {self.value!r}"
        hint = f" ({self.suggestion})" if self.suggestion else ""
        return f"{place}{self.property}{shown}: {self.problem}{hint}"


@dataclass(frozen=True, slots=True)
class MissingRight(Problem):
    """Somebody has to grant a right, and nothing else: a worker that begins waits for that, as for a server that is
    away. At its own start `run` ends with it, as with any other problem."""


class ConfigurationError(CdcError):
    """Something in the user's files or options is wrong; ``problems`` lists everything found, not just the first.

    ``notices``: what else is to be known of the same files, and is no reason to refuse them."""

    def __init__(self, problems: Iterable[Problem] | str, notices: Iterable[str] = ()) -> None:
        if isinstance(problems, str):
            problems = [Problem(property="configuration", problem=problems)]
        self.problems: Sequence[Problem] = tuple(problems)
        self.notices: Sequence[str] = tuple(dict.fromkeys(notices))
        super().__init__("\n".join(str(problem) for problem in self.problems))


class UsageError(ConfigurationError):
    """The command line is wrong."""


class StillRunning(CdcError):
    """Workers of the connector run, and would write over what is to be changed."""


class SourceError(CdcError):
    """ScyllaDB could not answer, or its answer cannot be used. ``node``: who said so, where that is known."""

    node: Any = None


class RetriableSourceError(SourceError):
    """The same request may succeed later."""


class ReplicasAway(RetriableSourceError):
    """Too few of those who hold what was asked for are there. Who asks less, or more slowly, gets no more."""


class FatalSourceError(SourceError):
    """The same request will fail until somebody changes something."""


class TableMissing(FatalSourceError):
    """The table, or its log table, does not exist."""


class CdcDisabled(FatalSourceError):
    """The table exists but has no change log."""


class AccessDenied(FatalSourceError):
    """The server refused the login or the right to read."""


class UnsupportedServer(FatalSourceError):
    """The server does not have the tables or features that reading needs."""


class DeliveryError(CdcError):
    """Kafka did not take what it was given."""


class RetriableDeliveryError(DeliveryError):
    """The same call may succeed later."""


class OthersToo(RetriableDeliveryError):
    """Others do the same at this moment, and were first: it is over soon, or is to be done again."""


class TransactionAborted(DeliveryError):
    """The transaction cannot commit; after a confirmed abort its records are produced again."""


class Disowned(TransactionAborted):
    """The consumer group does not know this member."""


class TooLate(DeliveryError):
    """The transaction took longer than what it holds could wait; nothing is wrong with it otherwise."""


class ProducerFenced(DeliveryError):
    """A newer producer owns the transactional id."""


class UnknownOutcome(DeliveryError):
    """It is not known whether a commit happened: only restoring from the topic tells."""


class ForeignGroup(DeliveryError):
    """Others that do not share our slots run the connector of this name: what both deliver would be there twice."""


class FatalDeliveryError(DeliveryError):
    """Will not go away by itself."""


class RightMissing(FatalDeliveryError):
    """Kafka refuses us a right, until somebody grants it."""


class TransactionsTooLong(FatalDeliveryError):
    """``transaction.timeout.ms`` is more than the brokers' ``transaction.max.timeout.ms``."""


class ClockSetBack(FatalDeliveryError):
    """What this process commits from now on looks older than what it has committed: another one goes on."""


class ClockIsWrong(FatalDeliveryError):
    """Kafka takes no records of this machine for its clock: those of others go on with its slots."""


class Stranded(FatalDeliveryError):
    """A client of this process has lost all its brokers, and only another process has others."""


class LoginRefused(FatalDeliveryError):
    """A Schema Registry, or whoever gives out tokens for it, refuses what we log in with."""


class LostClaim(CdcError):
    """The slot belongs to somebody else now."""


class PoisonRow(CdcError):
    """A row that can never be turned into a record; the message says which and why.

    ``stage``: what cannot be done with it, in Kafka Connect's word; without another one it cannot be read.
    """

    stage = "TASK_POLL"

    def at(self, stage: str) -> Self:
        """The same, of another stage."""
        self.stage = stage
        return self


class PoisonRecord(PoisonRow):
    """A row of which one record can never be made; ``others`` are its other ones."""

    def __init__(self, message: str, others: Sequence[Any]) -> None:
        super().__init__(message)
        self.others = others


class LandingError(CdcError):
    """A landing job cannot go on with a table."""


class EmbeddedError(CdcError):
    """An embedded server could not be started, or ended by itself."""


class JavaMissing(EmbeddedError):
    """There is no Java to run the broker or Spark with."""
