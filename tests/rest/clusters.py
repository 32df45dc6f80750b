"""Clusters without servers, for the API to stand in front of: one connector that runs, or any that are defined."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from connector.config import CONNECTOR_CLASS
from connector.errors import Problem
from connector.formats import check_transform, step_options
from connector.rest import ConnectorView, Instance, LoggerLevel, Offset, StepOption, Steps
from connector.secrets import MASK
from connector.worker.log_levels import levels, set_level
from tests.config.files import WORKER, validate

OURS = CONNECTOR_CLASS.rpartition(".")[2].removesuffix("Connector")


class Orders:
    """One connector with one task, as it is in the recording."""

    def __init__(self, *states: Any) -> None:
        self.states = states or ("RUNNING", "RUNNING")
        self.restarts: list[tuple[str, bool, list[int]]] = []
        self.altered: list[Sequence[Offset] | None] = []

    writable = False

    def given(self, connector: str) -> Mapping[str, str]:
        return {}

    def unheard(self, connector: str) -> str | None:
        return None

    def with_secrets(self, connector: str, config: Mapping[str, str]) -> dict[str, str]:
        return dict(config)

    def define(self, connector: str, config: Mapping[str, str] | None) -> None:
        raise AssertionError("a file defines it")

    def cluster_id(self) -> str | None:
        return "sWI6zyUaSiqxehlqNcNV1A"

    def connectors(self) -> Sequence[ConnectorView]:
        instance, *tasks = (Instance(state, "127.0.0.1:8083", "0.1.0") for state in self.states)
        return [ConnectorView("orders", {"name": "orders", "connector.class": OURS}, instance, tuple(tasks), ())]

    def offsets(self, connector: str) -> Sequence[Offset]:
        return ()

    def direct(self, connector: str, target: Any) -> None:
        tasks = {"STOPPED": ()}.get(target, (target,))
        self.states = (target, *tasks)

    def restart(self, connector: str, *, itself: bool, tasks: Collection[int]) -> None:
        self.restarts.append((connector, itself, [*tasks]))

    def forget_topics(self, connector: str) -> None:
        pass

    def levels(self) -> Mapping[str, LoggerLevel]:
        return {name: LoggerLevel(level, since) for name, (level, since) in levels().items()}

    def set_level(self, logger: str, level: int) -> Sequence[str]:
        return set_level(logger, level)

    def set_level_everywhere(self, logger: str, level: int) -> None:
        set_level(logger, level)

    def alter_offsets(self, connector: str, offsets: Sequence[Offset] | None) -> None:
        self.altered.append(offsets)

    def step_options(self, what: Steps, class_name: str) -> Sequence[StepOption]:
        return step_options(what, class_name)

    def problems(self, config: Mapping[str, str]) -> Sequence[Problem]:
        return validate({**config, "connector.class": OURS}, WORKER, {}, check_transform)


class Anything(Orders):
    """Connectors come and go; none runs."""

    writable = True

    def __init__(self) -> None:
        super().__init__()
        self.configs: dict[str, dict[str, str]] = {}
        self.targets: dict[str, str] = {}

    def given(self, connector: str) -> Mapping[str, str]:
        return self.configs.get(connector, {})

    def unheard(self, connector: str) -> str | None:
        return None

    def with_secrets(self, connector: str, config: Mapping[str, str]) -> dict[str, str]:
        return {name: self.configs[connector][name] if text == MASK else text for name, text in config.items()}

    def define(self, connector: str, config: Mapping[str, str] | None) -> None:
        self.configs.pop(connector, None)
        if config is not None:
            self.configs[connector] = dict(config)

    def direct(self, connector: str, target: Any) -> None:
        self.targets[connector] = target

    def connectors(self) -> Sequence[ConnectorView]:
        found = []
        for name, config in self.configs.items():
            task = Instance(self.targets.get(name, "RUNNING"), "127.0.0.1:8083", "0.1.0")  # type: ignore[arg-type]
            shown = {each: MASK if each == "scylla.password" else text for each, text in config.items()}
            found.append(ConnectorView(name, shown, task, () if task.state == "STOPPED" else (task,), ()))
        return found
