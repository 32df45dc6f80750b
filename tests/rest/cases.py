"""Requests that a real Connect worker was asked, in order; the recorded answers are in ``answers.json``.

`python -m tests.rest.cases URL` asks them of a worker (empty, with Kafka's FileStream connectors) and records anew.
"""

from __future__ import annotations

import http.client
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.servers.patience import until

ANSWERS = Path(__file__).with_name("answers.json")
EDGES_ANSWERED = ANSWERS.with_name("answers_at_edges.json")
STEPS_SHOWN = ANSWERS.with_name("steps_shown.json")
IN_ORDER = ANSWERS.with_name("answers_in_order.json")
_OF_THE_MOMENT = ("Date", "Server", "Content-Length", "Vary", "Transfer-Encoding")
#: The connector of the recording; ours stands in its place.
PLUGIN = "FileStreamSource"
CONFIG = {"connector.class": PLUGIN, "file": "/dev/null", "topic": "t1", "tasks.max": "1"}
VALIDATE = f"/connector-plugins/{PLUGIN}/config/validate"


@dataclass(frozen=True)
class Case:
    """``settles``: what was asked is done when the connector and its tasks are in these states."""

    method: str
    path: str
    body: Any = None
    headers: tuple[tuple[str, str], ...] = ()
    settles: tuple[str, ...] = ()

    def __str__(self) -> str:
        shown = "" if self.body is None else f" {self.body if isinstance(self.body, str) else json.dumps(self.body)}"
        return f"{self.method} {self.path}{shown}{''.join(f' {name}={value}' for name, value in self.headers)}"


#: A transform and a predicate of each class that Connect brings along and we have.
_TRANSFORM = "org.apache.kafka.connect.transforms."
STEPS = (
    *(
        ("transforms", f"{_TRANSFORM}{name}$Value")
        for name in ("Cast", "ExtractField", "Flatten", "HeaderFrom", "HoistField", "InsertField", "MaskField")
    ),
    *(
        ("transforms", f"{_TRANSFORM}{name}")
        for name in ("ReplaceField$Key", "SetSchemaMetadata$Key", "TimestampConverter$Key", "DropHeaders", "Filter")
    ),
    *(
        ("transforms", f"{_TRANSFORM}{name}")
        for name in ("InsertHeader", "RegexRouter", "TimestampRouter", "ValueToKey")
    ),
    *(
        ("predicates", f"{_TRANSFORM}predicates.{name}")
        for name in ("TopicNameMatches", "HasHeaderKey", "RecordIsTombstone")
    ),
    ("transforms", "no.such.Transform"),
    ("predicates", "no.such.Predicate"),
)


@dataclass(frozen=True)
class Answered:
    status: int
    headers: dict[str, str]
    body: str


RUNS = ("RUNNING", "RUNNING")
FIRST = Case("POST", "/connectors", {"name": "orders", "config": CONFIG}, settles=RUNS)
LOOKING = (
    *(Case("GET", path) for path in ("/", "/connectors", "/connectors/", "/connectors?expand=info")),
    *(Case("GET", f"/connectors?{query}") for query in ("expand=status&expand=info", "expand=x", "expand")),
    *(Case("GET", f"/connectors/orders{each}") for each in ("", "/", "/config", "/status", "/tasks", "/tasks-config")),
    *(Case("GET", f"/connectors/orders/tasks/{each}/status") for each in ("0", "7", "x", "-1")),
    *(Case("GET", f"/connectors/orders/{each}") for each in ("topics", "offsets")),
    *(Case("GET", f"/connectors/no{each}") for each in ("", "/config", "/status", "/tasks", "/tasks/0/status")),
    *(Case("GET", f"/connectors/{each}") for each in ("no/topics", "no/offsets", "a%20b", "%C3%BC/status")),
    *(Case("GET", f"/connector-plugins{each}") for each in ("", f"/{PLUGIN}/config", "/No/config", f"/{PLUGIN}")),
    *(Case("GET", f"/admin{each}") for each in ("", "/loggers", "/loggers/root", "/loggers/no.such")),
    *(Case("HEAD", path) for path in ("/", "/connectors/orders")),
    *(Case("OPTIONS", path) for path in ("/connector-plugins",)),
    Case("PUT", VALIDATE, CONFIG),
    Case("PUT", VALIDATE, {**CONFIG, "name": "x"}),
    Case("PUT", VALIDATE, {"connector.class": PLUGIN, "name": "q", "tasks.max": "x"}),
    Case("PUT", "/connector-plugins/Other/config/validate", CONFIG),
    *(Case("PUT", VALIDATE, body) for body in ({}, "{no", "[]", "")),
    Case("PUT", VALIDATE, CONFIG, (("Content-Type", "text/plain"),)),
    *(Case("GET", "/connectors", headers=(("Accept", each),)) for each in ("text/html", "application/*")),
    Case("GET", "/nothing"),
    *(Case(method, "/connectors/orders/topics") for method in ("PUT", "DELETE")),
)
RESTARTING = (
    Case("POST", "/connectors/orders/restart", settles=RUNS),
    Case("POST", "/connectors/orders/restart?includeTasks=true", settles=RUNS),
    *(
        Case("POST", f"/connectors/orders/restart?{query}", settles=RUNS)
        for query in ("includeTasks=true&onlyFailed=true", "onlyFailed=true", "onlyFailed=maybe")
    ),
    *(Case("POST", f"/connectors/no/restart{query}") for query in ("", "?includeTasks=true")),
    *(Case("POST", f"/connectors/{each}/restart") for each in ("orders/tasks/5", "orders/tasks/x", "no/tasks/0")),
    Case("POST", "/connectors/orders/tasks/0/restart", settles=RUNS),
    *(Case("GET", f"/connectors/orders/{each}") for each in ("restart", "tasks/0/restart")),
)
#: Each is answered in the light of those before it.
HOLDING = (
    Case("PUT", "/connectors/orders/pause", settles=("PAUSED", "PAUSED")),
    Case("GET", "/connectors/orders/status"),
    Case("PUT", "/connectors/orders/pause"),
    Case("PUT", "/connectors/orders/resume", settles=RUNS),
    Case("GET", "/connectors/orders/status"),
    Case("PUT", "/connectors/orders/stop", settles=("STOPPED",)),
    *(Case("GET", f"/connectors/orders{each}") for each in ("", "/status", "/tasks")),
    Case("PUT", "/connectors/orders/stop"),
    *(Case("PUT", f"/connectors/no/{each}") for each in ("pause", "resume", "stop")),
    *(Case(method, "/connectors/orders/pause") for method in ("GET", "POST")),
    Case("PUT", "/connectors/orders/resume", settles=RUNS),
)
#: What may stand in a path as it is, and what may not.
_PUNCTUATED = "!$&'()*+,;=:@~\"<[b"
WRITING = (
    Case("POST", "/connectors", {"name": "fresh", "config": CONFIG}),
    Case("POST", "/connectors", {"name": "fresh", "config": CONFIG}),
    *(Case("POST", "/connectors", body) for body in ("{no", "[]", "", {"name": "z"}, {"name": "z", "config": {}})),
    Case("POST", "/connectors", {"config": CONFIG}),
    Case("POST", "/connectors", {"name": "z", "config": {**CONFIG, "name": "y"}}),
    Case("POST", "/connectors", {"name": "z", "config": {**CONFIG, "tasks.max": "x"}}),
    Case("PUT", "/connectors/fresh/config", {**CONFIG, "tasks.max": "2"}),
    Case("PUT", "/connectors/fresh/config", {**CONFIG, "name": "other"}),
    Case("PUT", "/connectors/new/config", CONFIG),
    Case("PATCH", "/connectors/fresh/config", {"tasks.max": "1"}),
    Case("PATCH", "/connectors/fresh/config", {"tasks.max": "x"}),
    Case("PATCH", "/connectors/no/config", {"tasks.max": "1"}),
    *(Case("POST", "/connectors", {"name": name, "config": CONFIG}) for name in ("a b", " pad ")),
    *(Case("DELETE", f"/connectors/{name}") for name in ("fresh", "fresh", "new", "a%20b", "pad", "no")),
    Case("POST", "/connectors", {"name": _PUNCTUATED, "config": CONFIG}),
    Case("DELETE", "/connectors/%21%24%26'()%2A+%2C;=:@~%22%3C%5Bb"),
)
_PLACE = {"partition": {"filename": "/dev/null"}, "offset": {"position": 2}}
OFFSETS = (
    Case("PUT", "/connectors/orders/stop", settles=("STOPPED",)),
    *(Case("PATCH", "/connectors/orders/offsets", body) for body in ({}, {"offsets": []}, {"offsets": [_PLACE]})),
    Case("DELETE", "/connectors/orders/offsets"),
    Case("PUT", "/connectors/orders/resume", settles=RUNS),
    Case("PATCH", "/connectors/orders/offsets", {"offsets": [_PLACE]}),
    Case("DELETE", "/connectors/orders/offsets"),
    Case("PATCH", "/connectors/no/offsets", {"offsets": [_PLACE]}),
    Case("DELETE", "/connectors/no/offsets"),
)
_LOGGER = "/admin/loggers/org.apache.kafka.connect.runtime.Worker"
LOGGING = (
    *(Case("PUT", _LOGGER, {"level": level}) for level in ("DEBUG", "debug", "silly", None, 5)),
    *(Case("PUT", _LOGGER, body) for body in ({}, "[]", "")),
    Case("PUT", "/admin/loggers/no.such", {"level": "INFO"}),
    Case("PUT", f"{_LOGGER}?scope=worker", {"level": "INFO"}),
    Case("PUT", f"{_LOGGER}?scope=planet", {"level": "INFO"}),
    *(Case("PUT", f"{_LOGGER}?scope=cluster", {"level": level}) for level in ("INFO", "silly")),
    Case("GET", "/admin/loggers/org.apache.kafka.connect"),
    *(Case(method, _LOGGER, {"level": "INFO"}) for method in ("POST", "DELETE")),
    *(Case("PUT", f"/connectors/{name}/topics/reset") for name in ("orders", "no")),
    *(Case(method, "/connectors/orders/topics/reset") for method in ("GET", "POST", "DELETE")),
)
_NAMES = (
    "a%2Fb",
    "%2E%2E",
    "..",
    ".",
    "a%00b",
    "a%22b",
    "%",
    "%zz",
    "a;b",
    "",
    "a%0Ab",
    "a%25b",
    "%F0%9F%98%80",
    "%FF",
)
_ODD_TYPES = ("text/plain", "application/json; charset=utf-8", "application/*", "APPLICATION/JSON", "garbage", "")
_ODD_BODIES = (
    "",
    "{",
    "[]",
    "null",
    "1",
    '"x"',
    '{"a":1}',
    "{}{}",
    '{"a":{}}',
    '{"a":NaN}',
    "{'a':1}",
    '{"a":1,}',
    "  ",
)
_ODD_TARGETS = (
    "/#",
    "/connectors#x",
    "/connectors/#/x",
    "/connectors?expand=info#x",
    "*",
    "connectors",
    "?x",
    "/connectors/..;/x",
)
_ODD_ACCEPTS = (
    *(
        f"application/json;{each}"
        for each in ("a=b", 'a="b"', "a", "=b", "a=", "", "q=0", "q=0.1234", "q=2", "q=x", "q = 1")
    ),
    *("APPLICATION/JSON", "Application/Json;charset=UTF-8", "application/json;z=1;a=2;A=3", "APPLICATION/JSON;A=B"),
    *("application/*;a=b", "*/json", "text/html, application/json;a=b;q=0.1;c=d"),
    *("application/json;a=b,application/json", "application/json;q=0.1,application/json;a=b", ",", "application/json,"),
    *("application/json,,", "a", "a/b/c", "/json", "application/", "app lication/json", "text/plain,a"),
)
_READ = (("GET", "/connectors"), ("GET", "/connectors/no"), ("PUT", "/connectors/no/pause"))
_ODD_TYPES_OF_BODIES = (
    *(f"application/json;{each}" for each in ("a", "a=", "", "=b")),
    *("a", "/json", "application/", "a/b/c", "*/json", "*/*", "application/json, text/plain"),
)
_NUMBERS = ("1.50", "1e5", "1E+5", "-0", "-0.0", "1e400", "0.00001", "123456789012345678901234567890")
_NO_CLASS = {"file": "/dev/null", "topic": "t1", "tasks.max": "1", "transforms": "", "a": None}
#: What clients send by mistake; no connector is needed for it.
EDGES = (
    *(Case("GET", f"/connectors/{name}{rest}") for name in _NAMES for rest in ("", "/status", "/topics")),
    *(Case("POST", f"/connectors/{name}/restart") for name in _NAMES),
    *(Case("GET", path) for path in ("//", "//connectors", "/connectors//no", "/CONNECTORS", "/connectors/./no")),
    *(Case(method, path) for method in ("OPTIONS", "TRACE", "BREW") for path in ("/", "/connectors", "/nothing")),
    *(
        Case("OPTIONS", f"/connectors/no{rest}")
        for rest in ("", "/config", "/status", "/topics/reset", "/offsets", "/restart", "/pause", "/tasks/0/restart")
    ),
    *(Case("GET", "/connectors", headers=(("Accept", each),)) for each in ("", "*", "garbage", "*/*;q=0", "text/*")),
    *(Case("GET", f"/connectors/no/tasks/{each}/status") for each in ("+0", "00", "1.0", "2147483648", "-2147483648")),
    *(
        Case(method, path, {}, (("Content-Type", each),))
        for method, path in (("POST", "/connectors"), ("PUT", VALIDATE), ("PUT", "/connectors/no/pause"))
        for each in _ODD_TYPES
    ),
    *(
        Case(method, path, body)
        for method, path in (
            ("POST", "/connectors"),
            ("PUT", "/connectors/no/config"),
            ("PUT", VALIDATE),
            ("PATCH", "/connectors/no/offsets"),
            ("PUT", "/admin/loggers/no.such"),
        )
        for body in _ODD_BODIES
    ),
    *(
        Case("POST", "/connectors", {"name": name, "config": CONFIG})
        for name in (None, "", "  ", "a\nb", "a\x00b", ["n"], {"a": 1})
    ),
    *(Case("POST", "/connectors", {"name": name, "config": {}}) for name in (5, True, "a b")),
    *(
        Case("POST", "/connectors", {"name": "n", "config": {}, "initial_state": state})
        for state in ("bogus", "", 5, None, ["STOPPED"])
    ),
    Case("POST", "/connectors", {"name": "n", "config": CONFIG, "initialState": "STOPPED"}),
    Case("POST", "/connectors", {"name": "n", "config": _NO_CLASS}),
    Case("POST", "/connectors", {"name": "n", "config": {**CONFIG, "of.nobody": None}}),
    Case("PUT", "/connectors/no/config", _NO_CLASS),
    Case("PUT", VALIDATE, _NO_CLASS),
    *(Case("PATCH", "/connectors/no/offsets", body) for body in ({"offsets": "x"}, {"offsets": {}}, {"x": 1})),
    *(Case("PUT", "/admin/loggers/no.such", {"level": level}) for level in ("", " ", [], {}, "WARNING")),
    *(Case("GET", f"/connector-plugins/{PLUGIN}/config?version={each}") for each in ("latest", "1", "")),
    *(Case("GET", each) for each in _ODD_TARGETS),
    *(Case("GET", f"/connectors/a{letter}b/status") for letter in '"<>[]^`{|}!$&()*+,:=@_~'),
    *(Case("CONNECT", path) for path in ("/connectors", "/nothing")),
    *(Case(method, "/connectors/no/tasks") for method in ("OPTIONS", "PUT")),
    *(Case(method, "/connectors/no/fence") for method in ("OPTIONS", "PUT", "GET")),
    Case("POST", "/connectors/no/tasks", "[]"),
    *(Case(method, path, headers=(("Accept", each),)) for method, path in _READ for each in _ODD_ACCEPTS),
    *(
        Case(method, path, body, (("Content-Type", each),))
        for method, path in (("PUT", "/connectors/no/pause"), ("PATCH", "/connectors/no/config"))
        for body in ({}, None)
        for each in _ODD_TYPES_OF_BODIES
    ),
    *(Case("PATCH", "/connectors/no/config", body) for body in (*_ODD_BODIES, None)),
    *(Case("PUT", "/connectors/no/config", f'{{"a": {number}}}') for number in _NUMBERS),
    Case("PUT", "/connectors/no/config", {}, (("Host", ""),)),
    *(Case("POST", "/connectors/no/tasks", body) for body in (None, "", "{}", "{no")),
    *(Case("GET", path) for path in ("/connectors%2Fno", "/nothing%2fno", "/connectors/no%2Fstatus")),
    *(Case("PATCH", "/connectors/no/offsets", {"offsets": [each]}) for each in ({}, {"partition": None}, None, 1)),
    *(
        Case(method, path, body, (("Accept", "text/html"), ("Content-Type", "text/plain")))
        for method, path in (("PUT", "/connectors/no/pause"), ("POST", "/connectors"), ("GET", "/connectors/no"))
        for body in (None, {})
    ),
    *(
        Case(method, path, body, (("Content-Type", "text/plain"),))
        for method, path in (("POST", "/connectors/no/tasks"), ("PUT", "/connectors/no/fence"))
        for body in ("null", "[]", "{}")
    ),
    *(Case("GET", path, headers=(("Expect", "100-continue"),)) for path in ("/connectors", "/nothing")),
)


def ask(url: str, case: Case) -> Answered:
    """Of any worker."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=90)
    try:
        body = case.body if isinstance(case.body, str | None) else json.dumps(case.body)
        headers = {**({} if body is None else {"Content-Type": "application/json"}), **dict(case.headers)}
        connection.request(case.method, case.path, body, headers)
        answer = connection.getresponse()
        return Answered(answer.status, dict(answer.getheaders()), answer.read().decode())
    finally:
        connection.close()


def steps_shown(url: str, what: str, class_name: str) -> dict[str, dict[str, Any]]:
    """The definitions of one step, in order; of its texts none, and nothing of versions."""
    body = {**CONFIG, "name": "n", what: "one", f"{what}.one.type": class_name}
    found = json.loads(ask(url, Case("PUT", VALIDATE, body)).body)
    groups = [each for each in found["groups"] if each.endswith(": one")]
    shown = [each["definition"] for each in found["configs"] if each["definition"]]
    kept = {each["name"]: {**each, "documentation": ""} for each in shown if each["group"] in groups}
    kept.get(f"{what}.one.plugin.version", {})["default_value"] = None
    return kept


def states(url: str) -> tuple[str, ...]:
    """Of the connector and its tasks."""
    status = json.loads(ask(url, Case("GET", "/connectors/orders/status")).body)
    return (status["connector"]["state"], *(task["state"] for task in status["tasks"])) if "connector" in status else ()


def recorded() -> dict[str, Answered]:
    return {case: Answered(**answer) for case, answer in json.loads(ANSWERS.read_text()).items()}


def recorded_in_order(group: str) -> list[Answered]:
    return [Answered(**answer) for answer in json.loads(IN_ORDER.read_text())[group]]


def recorded_at_edges() -> dict[str, Answered]:
    return {case: Answered(**answer) for case, answer in json.loads(EDGES_ANSWERED.read_text()).items()}


def record(url: str) -> None:
    shown = {f"{what} {name}": steps_shown(url, what, name) for what, name in STEPS}
    STEPS_SHOWN.write_text(json.dumps(shown, indent=1) + "\n")
    EDGES_ANSWERED.write_text(json.dumps({str(case): _asked(url, case) for case in EDGES}, indent=1) + "\n")
    found = {str(case): _asked(url, case) for case in (FIRST, *LOOKING, *RESTARTING)}
    ANSWERS.write_text(json.dumps(found, indent=1) + "\n")
    groups = {"holding": HOLDING, "writing": WRITING, "offsets": OFFSETS, "logging": LOGGING}
    in_order = {name: [_asked(url, case) for case in cases] for name, cases in groups.items()}
    IN_ORDER.write_text(json.dumps(in_order, indent=1) + "\n")


def _asked(url: str, case: Case) -> dict[str, Any]:
    answered = ask(url, case)
    if case.settles:
        until(lambda: states(url) == case.settles, what=f"{case} to be done")
    kept = {name: text for name, text in answered.headers.items() if name not in _OF_THE_MOMENT}
    return {"status": answered.status, "headers": kept, "body": _kept(answered.body)}


def _kept(text: str) -> str:
    """The form of a body: of long lists the first members, of documentation nothing."""

    def cut(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: "" if name == "documentation" else cut(member) for name, member in value.items()}
        return [cut(member) for member in value[:3]] if isinstance(value, list) else value

    try:
        return json.dumps(cut(json.loads(text)))
    except ValueError:
        return text


if __name__ == "__main__":
    record(sys.argv[1])
