"""The shipped alerting rules fire for the failures that they are for, and for no others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from connector.worker.child import Child
from connector.worker.elsewhere import Elsewhere
from connector.worker.holding import Target
from connector.worker.kept_topics import KeptTopics
from connector.worker.messages import BlockedMessage, StatusMessage
from connector.worker.metrics import metrics_page
from connector.worker.order import WorkerOrder
from connector.worker.status_document import WorkerStatus
from connector.worker.supervisor import Supervisor
from tests.worker.alert_rules import Page, alerts, firing, page

RULES = Path(__file__).resolve().parents[2] / "config" / "monitoring" / "alerts.yaml"
SCRAPE_SECONDS = 15.0
TABLE: dict[str, Any] = {
    "state": "RUNNING",
    "records": 0,
    "lag_ms": 31_000,
    "position_ms": 1,
    "failed_groups": 0,
    "dead_letters": 0,
    "late_changes": {},
    "expired": 0,
    "log_ttl_seconds": 86_400,
}


class Process:
    """One that neither runs nor ends."""

    pid = 7


class Scene:
    """A supervisor with one worker, whose clock and reports the test makes."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.table = {**TABLE}
        self.worker: dict[str, Any] = {"state": "RUNNING", "slots": list(range(25)), "background_seconds": {"group": 0}}
        self.pages: list[Page] = []
        configuration: Any = SimpleNamespace(connector=SimpleNamespace(name="c"), group="g-c")
        order = WorkerOrder(configuration, 0, secrets={})
        self.supervisor = Supervisor([], [order], monotonic=lambda: self.now)
        # There is no other process, and no Kafka that would tell of one.
        self.supervisor.elsewhere = Elsewhere(lambda: self.now, lambda _: ())
        self.supervisor.kept_topics = KeptTopics(lambda: self.now, lambda *_: {})
        self.supervisor.waiting_for = None
        self.begin()

    def begin(self) -> None:
        self.child = Child(0, Process(), heard=self.now)  # type: ignore[arg-type]
        if 0 in self.supervisor._last:
            self.child.status, self.child.status_at = self.supervisor._last[0]
        self.supervisor.children[0] = self.child

    def report(self) -> None:
        status = {
            "worker": "w",
            "fingerprint": "f",
            "tables_configured": ["ks.t"],
            "time_ms": round(self.now * 1000),
            "slot_count": 25,
            "delivery": {"rebalances": 1},
            **self.worker,
            "tables": {"ks.t": self.table},
        }
        self.supervisor._take(self.child, StatusMessage(status=WorkerStatus.model_validate(status)))

    def blocked(self) -> None:
        self.supervisor._take(self.child, BlockedMessage(seconds=5, cause="Kafka at h:9092: connection refused"))

    def pass_by(self, minutes: float, says: Callable[[], object] | None) -> None:
        for _ in range(round(minutes * 60 / SCRAPE_SECONDS)):
            for _ in range(int(SCRAPE_SECONDS)):
                self.now += 1
                if says is not None:
                    says()
                self.supervisor._look_after()
            self.pages.append((self.now, page(metrics_page(self.supervisor.status))))

    def fires(self) -> set[str]:
        return firing(RULES, self.pages)


@pytest.fixture
def scene() -> Scene:
    made = Scene()
    made.pass_by(20, made.report)
    assert made.fires() == set()
    return made


def test_a_worker_that_is_silent(scene: Scene) -> None:
    scene.pass_by(1.5, None)
    assert scene.fires() == {"WorkerHangs"}
    scene.pass_by(10, None)
    assert scene.fires() >= {"WorkerHangs", "ConnectorIsNotRunning", "ChangesAreNotRead"}
    scene.pass_by(20, scene.report)
    assert scene.fires() == set()


@pytest.mark.parametrize("target", [Target.PAUSED, Target.STOPPED])
def test_a_connector_that_was_asked_to_stand_still(scene: Scene, target: Target) -> None:
    """Also one that was failing then. None of its workers hangs, and no slot lacks an owner."""
    scene.worker["background_seconds"] = {"group": 100}
    scene.worker["connector"] = "c"
    scene.pass_by(1, scene.report)
    scene.supervisor._last[0] = (scene.child.status, scene.child.status_at)  # type: ignore[assignment]
    scene.supervisor.tenants["g-c"].target = target
    scene.supervisor.children = {}
    scene.pass_by(20, lambda: None)
    assert scene.fires() == {"ConnectorIsNotRunning", "ChangesAreNotRead"}


def test_kafka_that_is_away(scene: Scene) -> None:
    scene.pass_by(12, scene.blocked)
    assert scene.fires() >= {"ConnectorIsNotRunning", "ChangesAreNotRead"}


def test_a_worker_that_is_started_again_and_again(scene: Scene) -> None:
    """Its figures do not vanish with each process."""
    for _ in range(14):
        scene.supervisor._last[0] = (scene.child.status, scene.child.status_at)  # type: ignore[assignment]
        scene.supervisor.tenants["g-c"].restarts += 1
        scene.begin()
        scene.pass_by(1, None)
    assert scene.fires() >= {"WorkersKeepEnding", "ConnectorIsNotRunning", "ChangesAreNotRead"}


@pytest.mark.parametrize(
    ("figures", "alert"),
    [
        ({"failed_groups": 1, "state": "FAILED"}, "StreamsFailed"),
        ({"expired": 2}, "ChangesMayBeLost"),
        ({"log_ttl_seconds": 60}, "ChangesExpireSoon"),
        ({"dead_letters": 1}, "DeadLetters"),
        ({"late_changes": {"lost": 1}}, "NodesLearnLateOfStreams"),
    ],
)
def test_a_table_that_needs_a_look(scene: Scene, figures: dict[str, Any], alert: str) -> None:
    scene.table.update(figures)
    scene.pass_by(1, scene.report)
    assert scene.fires() == {alert}


@pytest.mark.parametrize(
    ("says", "alerts"),
    [
        ({"slots": [1, 2]}, {"SlotsWithoutOwner"}),
        ({"background_seconds": {"group": 130}}, {"WorkBesideReadingFails"}),
    ],
)
def test_a_worker_that_needs_a_look(scene: Scene, says: dict[str, Any], alerts: set[str]) -> None:
    scene.worker.update(says)
    scene.pass_by(3, scene.report)
    assert scene.fires() == alerts


def two_connectors(**of_the_second: Any) -> list[Page]:
    """Pages of one process with the connectors c and d, which have a table of one name; c is well."""
    now = 1_000.0
    orders = []
    for index, name in enumerate("cd"):
        configuration: Any = SimpleNamespace(connector=SimpleNamespace(name=name), group=f"g-{name}")
        orders.append(WorkerOrder(configuration, index, secrets={}))
    supervisor = Supervisor([], orders, monotonic=lambda: now)
    supervisor.waiting_for = None
    pages: list[Page] = []
    children = [Child(order.index, Process(), order.configuration.group, heard=now) for order in orders]  # type: ignore[arg-type]
    supervisor.children = {child.index: child for child in children}
    for _ in range(80):
        now += SCRAPE_SECONDS
        for child, name in zip(children, "cd", strict=True):
            own = of_the_second if name == "d" else {}
            status = {
                "worker": name,
                "connector": name,
                "index": child.index,
                "fingerprint": "f",
                "tables_configured": ["ks.t"],
                "time_ms": round(now * 1000),
                "slot_count": 25,
                "delivery": {"rebalances": 1},
                "state": own.get("state", "RUNNING"),
                "slots": own.get("slots", list(range(25))),
                "background_seconds": own.get("background_seconds", {"group": 0}),
                "tables": {"ks.t": {**TABLE, **own.get("table", {})}},
            }
            supervisor._take(child, StatusMessage(status=WorkerStatus.model_validate(status)))
        pages.append((now, page(metrics_page(supervisor.status))))
    return pages


@pytest.mark.parametrize(
    ("says", "alert", "labels"),
    [
        ({}, None, {}),
        ({"slots": [1, 2, 3]}, "SlotsWithoutOwner", {"connector": "d"}),
        ({"state": "WAITING"}, "ConnectorIsNotRunning", {"connector": "d"}),
        ({"table": {"failed_groups": 1}}, "StreamsFailed", {"connector": "d", "table": "ks.t"}),
        ({"table": {"lag_ms": 400_000}}, "ChangesAreNotRead", {"connector": "d", "table": "ks.t"}),
        ({"background_seconds": {"group": 130}}, "WorkBesideReadingFails", {"connector": "d", "task": "group"}),
    ],
)
def test_of_two_connectors_the_one_that_fails_is_named(
    says: dict[str, Any], alert: str | None, labels: dict[str, str]
) -> None:
    assert alerts(RULES, two_connectors(**says)) == ({} if alert is None else {alert: [labels]})


def test_no_connector_at_all(scene: Scene) -> None:
    scene.pages += [(scene.now + 15.0 * each, {}) for each in range(1, 10)]
    assert scene.fires() == {"NothingIsMeasured"}


def test_every_rule_has_its_failure() -> None:
    import yaml

    [group] = yaml.safe_load(RULES.read_text())["groups"]
    text = Path(__file__).read_text()
    assert not [rule["alert"] for rule in group["rules"] if f'"{rule["alert"]}"' not in text]
