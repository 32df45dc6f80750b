"""What the API asks of the service, and the forms of what it is told.

In and out: frozen values; ``document`` is their JSON in Connect's words.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

from connector.errors import Problem

ConnectState = Literal["UNASSIGNED", "RUNNING", "PAUSED", "STOPPED", "FAILED", "RESTARTING"]


@dataclass(frozen=True, slots=True)
class Instance:
    """A connector or a task, where it runs. ``trace``: why it has failed."""

    state: ConnectState
    worker_id: str
    version: str
    trace: str | None = None

    def document(self) -> dict[str, Any]:
        trace = {"trace": self.trace} if self.trace else {}
        return {"state": self.state, "worker_id": self.worker_id, **trace, "version": self.version}


@dataclass(frozen=True, slots=True)
class ConnectorView:
    """``config`` as it may be shown; ``tasks`` in order, their place is their number; ``topics`` that it wrote to.
    ``converters``: those in force, which the worker's file may name; None where nobody has told."""

    name: str
    config: Mapping[str, str]
    instance: Instance
    tasks: tuple[Instance, ...]
    topics: tuple[str, ...]
    converters: Mapping[str, str] | None = None

    def info(self) -> dict[str, Any]:
        tasks = [{"connector": self.name, "task": number} for number in range(len(self.tasks))]
        return {"name": self.name, "config": dict(self.config), "tasks": tasks, "type": "source"}

    def status(self) -> dict[str, Any]:
        tasks = [self.task_status(number) for number in range(len(self.tasks))]
        return {"name": self.name, "connector": self.instance.document(), "tasks": tasks, "type": "source"}

    def restarted(self, itself: bool, tasks: Collection[int]) -> ConnectorView:
        """As it is shown when a restart was asked for."""
        begun = [replace(each, state="RESTARTING", trace=None) for each in (self.instance, *self.tasks)]
        shown = tuple(begun[1 + at] if at in tasks else task for at, task in enumerate(self.tasks))
        return replace(self, instance=begun[0] if itself else self.instance, tasks=shown)

    def task_status(self, number: int) -> dict[str, Any]:
        return {"id": number, **self.tasks[number].document()}

    def task_configs(self) -> list[dict[str, Any]]:
        config = {**self.config, "task.class": f"{self.config['connector.class']}Task"}
        return [{"id": {"connector": self.name, "task": each}, "config": config} for each in range(len(self.tasks))]


@dataclass(frozen=True, slots=True)
class LoggerLevel:
    """In force, by Python's numbers; ``modified_ms``: since when, if it was set at run time."""

    level: int
    modified_ms: int | None


@dataclass(frozen=True, slots=True)
class Offset:
    """A place in the source, and how far it is delivered; None: nothing of it is."""

    partition: Mapping[str, Any]
    offset: Mapping[str, Any] | None


#: The two kinds of steps on a record's way, by the properties that list them.
Steps = Literal["transforms", "predicates"]


class StepOption(Protocol):
    """What a transform or a predicate may be told. ``type``: by Connect's names."""

    @property
    def name(self) -> str: ...

    @property
    def type(self) -> str: ...

    @property
    def required(self) -> bool: ...

    @property
    def default(self) -> str | None: ...

    @property
    def doc(self) -> str: ...


class Cluster(Protocol):
    """The service. What says so may take a while: it is called in another thread than the server's."""

    def cluster_id(self) -> str | None:
        """Kafka's; may take a while. None while Kafka does not say it."""

    def connectors(self) -> Sequence[ConnectorView]:
        """All that there are."""

    def offsets(self, connector: str) -> Sequence[Offset]:
        """What is committed; may take a while. Raises ``CdcError``."""

    @property
    def writable(self) -> bool:
        """Whether connectors come and go through the API; else files define them."""

    def given(self, connector: str) -> Mapping[str, str]:
        """The properties of a connector that came through the API, with all that is secret in them."""

    def unheard(self, connector: str) -> str | None:
        """Which process runs a connector and does not hear what is asked of it, in words."""

    def with_secrets(self, connector: str, config: Mapping[str, str]) -> dict[str, str]:
        """Properties that somebody was shown and sends back, with the secrets that he was not shown."""

    def define(self, connector: str, config: Mapping[str, str] | None) -> None:
        """As ``direct``: what a connector is; None: it is no more."""

    def direct(self, connector: str, target: Literal["RUNNING", "PAUSED", "STOPPED"]) -> None:
        """In every process, and for the next ones; may take a while. Raises ``CdcError``."""

    def restart(self, connector: str, *, itself: bool, tasks: Collection[int]) -> None:
        """Soon: it is not waited for, but that others hear of it; may take a while. Raises ``CdcError``.
        ``itself``: the connector, which matters if it has failed as a whole.

        A task that has failed tries again what has failed in it; others are ended in order and started anew.
        """

    def forget_topics(self, connector: str) -> None:
        """Which topics it has written to, in every process; may take a while. Raises ``CdcError``."""

    def levels(self) -> Mapping[str, LoggerLevel]:
        """Of all loggers of this process; the root's is ``root``."""

    def set_level(self, logger: str, level: int) -> Sequence[str]:
        """Of a logger and all below it, in this process. Those whose level it changes."""

    def set_level_everywhere(self, logger: str, level: int) -> None:
        """As ``set_level``, in every process; may take a while. Raises ``CdcError``."""

    def alter_offsets(self, connector: str, offsets: Sequence[Offset] | None) -> None:
        """Of one that is STOPPED; None: all, as if it had never run; may take a while. Raises ``CdcError``."""

    def problems(self, config: Mapping[str, str]) -> Sequence[Problem]:
        """All that is wrong with a connector's configuration; may take a while."""

    def step_options(self, what: Steps, class_name: str) -> Sequence[StepOption]:
        """What transforms or predicates of a class may be told; nothing, if there is no such class."""
