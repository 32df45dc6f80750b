"""Holds the manifests in config/kubernetes against Kubernetes' published schemas, the image and the service."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import Any

import kubernetes_validate
import pytest
import yaml

from connector.cli.worker import PATIENCE_SECONDS
from connector.config.properties.catalogue import WORKER_BY_NAME
from connector.worker.http import status_routes
from connector.worker.supervisor import STOP_SECONDS
from tests.house import ROOT

FOLDER = ROOT / "config" / "kubernetes"
#: The oldest and the newest that is held up with patches, as far as the schemas go.
VERSIONS = ("1.30", "1.33")
NAMES = ("statefulset", "service", "poddisruptionbudget")


def manifest(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((FOLDER / f"{name}.yaml").read_text())
    return found


def pod() -> dict[str, Any]:
    spec: dict[str, Any] = manifest("statefulset")["spec"]["template"]["spec"]
    return spec


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", NAMES)
def test_a_manifest_is_as_kubernetes_wants_it(name: str, version: str) -> None:
    kubernetes_validate.validate(manifest(name), version, strict=True)


def test_the_schemas_refuse_what_is_misspelt() -> None:
    wrong = manifest("statefulset")
    wrong["spec"]["replica"] = 2
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, VERSIONS[0], strict=True)


def test_what_is_kustomized_is_there() -> None:
    kustomization = manifest("kustomization")
    files = [
        *kustomization["resources"],
        *(file for each in kustomization["configMapGenerator"] for file in each["files"]),
    ]
    assert [name for name in files if not (FOLDER / name).exists()] == []
    assert {each["name"] for each in kustomization["configMapGenerator"]} == {
        volume["configMap"]["name"] for volume in pod()["volumes"]
    }


def test_whatever_selects_pods_selects_these() -> None:
    labels = manifest("statefulset")["spec"]["template"]["metadata"]["labels"]
    for name in ("statefulset", "poddisruptionbudget"):
        assert manifest(name)["spec"]["selector"]["matchLabels"] == labels
    assert manifest("service")["spec"]["selector"] == labels
    assert pod()["topologySpreadConstraints"][0]["labelSelector"]["matchLabels"] == labels
    monitor, service = manifest("servicemonitor"), manifest("service")
    assert monitor["spec"]["selector"]["matchLabels"] == service["metadata"]["labels"]
    assert monitor["spec"]["endpoints"][0]["port"] in {port["name"] for port in service["spec"]["ports"]}
    assert manifest("statefulset")["spec"]["serviceName"] == service["metadata"]["name"]


def test_probes_ask_what_needs_no_token() -> None:
    container = pod()["containers"][0]
    routes = {route.path: route for route in status_routes(None)}  # type: ignore[arg-type]
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert routes[container[probe]["httpGet"]["path"]].open
    (port,) = container["ports"]
    assert str(port["containerPort"]) == container["args"][container["args"].index("--http-port") + 1]


def test_a_pod_has_the_time_that_an_orderly_end_takes() -> None:
    assert PATIENCE_SECONDS < STOP_SECONDS < pod()["terminationGracePeriodSeconds"]


def test_it_runs_as_the_user_of_the_image() -> None:
    made = re.search(r"useradd --uid (\d+)", (ROOT / "Dockerfile").read_text())
    security = pod()["securityContext"]
    assert made and security["runAsUser"] == int(made[1]) and security["runAsNonRoot"]
    assert pod()["containers"][0]["securityContext"]["readOnlyRootFilesystem"]


def test_variables_set_properties_that_there_are() -> None:
    names = [each["name"] for each in pod()["containers"][0]["env"] if each["name"].startswith("CONNECT_")]
    assert names
    for name in names:
        assert name.removeprefix("CONNECT_").lower().replace("_", ".") in WORKER_BY_NAME


def test_the_configuration_is_valid_and_takes_its_secrets_from_the_secret() -> None:
    text = "".join((FOLDER / f"{name}.json").read_text() for name in ("connector", "worker"))
    secrets = set(re.findall(r"\$\{env:(\w+)\}", text))
    assert secrets == {"REST_TOKEN", "SCYLLA_PASSWORD"}
    assert all(name in (FOLDER / "statefulset.yaml").read_text() for name in secrets)
    command = ["validate", str(FOLDER / "connector.json"), "--worker", str(FOLDER / "worker.json"), "--offline"]
    environment = {**os.environ, **dict.fromkeys(secrets, "correct horse battery")}
    done = subprocess.run(
        [sys.executable, "-m", "connector", *command], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
