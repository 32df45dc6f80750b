"""The shipped dashboard and rules ask for metrics and labels that exist, and a renamed one is noticed."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from connector.worker.metrics import metrics_page
from connector.worker.status_document import ServiceStatus
from tests.worker.promql import labels_of, parsed

MONITORING = Path(__file__).resolve().parents[2] / "config" / "monitoring"
RULES = MONITORING / "alerts.yaml"
DASHBOARD: dict[str, Any] = json.loads((MONITORING / "dashboard.json").read_text())
OPERATIONS = MONITORING.parents[1] / "docs" / "operations.md"
RECORDED = json.loads(Path(__file__).with_name("status.json").read_text())
WIDTH = 24


def metrics() -> dict[str, frozenset[str]]:
    """All that the service measures, with their labels."""
    document = {**RECORDED, "workers": [{**worker} for worker in RECORDED["workers"]]}
    histogram = {"bounds": [1.0], "counts": [1, 0], "sum": 0.5}
    for worker in document["workers"]:
        more = {
            "skipped": {"preimage": 1},
            "latency_seconds": histogram,
            "batch_rows": histogram,
            "log_ttl_seconds": 86_400,
            "snapshot": {"ended": False},
        }
        worker["tables"] = {
            name: {**table, "records": 1, "lag_ms": 1, **more} for name, table in worker["tables"].items()
        }
        worker["delivery"] = {**worker.get("delivery", {}), "transaction_records": histogram}
        worker["background_seconds"] = {"group": 0.0}
    text = metrics_page(lambda: ServiceStatus.model_validate(document)).decode()
    found: dict[str, frozenset[str]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found[sample.name] = found.get(sample.name, frozenset()) | frozenset(sample.labels)
    return found


def panels() -> list[dict[str, Any]]:
    return [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]


def queries() -> Iterator[tuple[str, str, str]]:
    """Where a query stands, the query, and how its series are called."""
    for panel in panels():
        for target in panel["targets"]:
            yield panel["title"], target["expr"], target["legendFormat"]
    for rule in yaml.safe_load(RULES.read_text())["groups"][0]["rules"]:
        yield rule["alert"], rule["expr"], " ".join(rule["annotations"].values())


def test_every_query_asks_for_what_exists_and_names_what_it_gets() -> None:
    known = metrics()
    assert len(known) > 30
    for where, query, called in queries():
        try:
            labels = labels_of(parsed(query), known)
        except ValueError as error:
            raise AssertionError(f"{where}: {error}") from None
        named = {*re.findall(r"\{\{\s*(?:\$labels\.)?([a-z_]+)\s*\}\}", called)}
        assert named <= labels, f"{where} names {sorted(named - labels)}, which its query does not keep"


@pytest.mark.parametrize(
    "query",
    [
        "scylla_cdc_lags_seconds",
        "sum by (tables) (scylla_cdc_lag_seconds)",
        'scylla_cdc_workers{table=~"a"}',
        "rate(scylla_cdc_rows_total)",
        "histogram_quantile(0.5, sum by (table) (rate(scylla_cdc_batch_rows_bucket[5m])))",
        "max by (table) (scylla_cdc_lag_seconds) / min by (worker) (scylla_cdc_log_ttl_seconds)",
        "sum by (table) (scylla_cdc_lag_seconds",
        "avg(scylla_cdc_lag_seconds)",
        "scylla_cdc_lag_seconds >",
        "scylla_cdc_lag_seconds 3",
    ],
)
def test_a_query_that_cannot_be_answered_is_noticed(query: str) -> None:
    with pytest.raises(ValueError):
        labels_of(parsed(query), metrics())


def test_every_metric_is_documented_and_every_figure_is_on_the_dashboard() -> None:
    text = OPERATIONS.read_text()
    # Of a histogram the buckets are asked for.
    families = {re.sub(r"_(bucket|count|sum)$", "", name) for name in metrics() if name.startswith("scylla_cdc_")}
    assert {name for name in families if f"`{name}`" not in text} == set()
    asked = "\n".join(query for _, query, _ in queries())
    assert {name for name in families if not re.search(rf"\b{name}(_bucket)?\b", asked)} == set()


def test_the_dashboard_is_one_that_grafana_lays_out_as_it_is() -> None:
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(ids) == len({*ids})
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert place["x"] + place["w"] <= WIDTH and not cells & taken, panel["title"]
        taken |= cells
    variables = {each["name"] for each in DASHBOARD["templating"]["list"]}
    used = {*re.findall(r"\$\{?([a-z]+)\}?", json.dumps(panels()))}
    assert used == variables
    known = metrics()
    for variable in DASHBOARD["templating"]["list"]:
        if variable["type"] == "query":
            selector, label = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["definition"]).groups()  # type: ignore[union-attr]
            assert label in labels_of(parsed(selector), known)
    assert all(panel["description"].strip() for panel in panels())


@pytest.mark.promtool
def test_prometheus_reads_every_query_and_rule(tmp_path: Path) -> None:
    check = ["promtool", "check", "rules"]
    done = subprocess.run([*check, str(RULES)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    recorded = [
        {"record": f"query:{number}", "expr": query.replace("$__rate_interval", "5m")}
        for number, (_, query, _) in enumerate(queries())
    ]
    as_rules = tmp_path / "queries.yaml"
    as_rules.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": recorded}]}))
    done = subprocess.run([*check, "--lint=none", str(as_rules)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    # Metrics themselves, by Prometheus' lint: names, units, help.
    document = ServiceStatus.model_validate(RECORDED)
    page = metrics_page(lambda: document)
    lint = subprocess.run(["promtool", "check", "metrics"], input=page, capture_output=True)
    assert lint.returncode == 0, (lint.stdout + lint.stderr).decode()
