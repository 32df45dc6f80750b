"""Fuzzers of what comes from outside before it is anything: files in any encoding, variables, addresses, HTTP requests.

In: a ``random.Random``. Out: nothing; every exception but those that are caught here is a defect.
"""

from __future__ import annotations

import functools
import random
import socket
import tempfile
from pathlib import Path

from connector.config import Invalid
from connector.config.environment import environment_properties, variables_of
from connector.config.forms import read_configurations
from connector.config.properties.address import parse_contact_points
from connector.http import Access, HttpServer, Request, Route, answer_json
from connector.http.origins import foreign

_ENCODINGS = ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32", "latin-1", "cp1252", "utf-7", "shift_jis"]
_TEXTS = [
    '{"name": "shop", "config": {"topic.prefix": "p", "scylla.table.names": "ks.t"}}',
    "name=shop\ntopic.prefix=p\nscylla.user = caf\\u00e9\\\n  more\n",
    "name: shop\nconfig:\n  topic.prefix: [p, é]\n---\n- &a x\n- *a\n",
    "export CONNECT_GROUP_ID='g'\nCONNECT_OFFSET_STORAGE_TOPIC=\"o\"\n",
    "services:\n  a: {env_file: [b], extends: {service: c}, environment: {CONNECT_GROUP_ID: '${X:-$$y}'}}\n  c: &c\n"
    "    environment: [CONNECT_X=$X, CONNECT_Y]\n    image: debezium/connect\n",
    "kind: Pod\napiVersion: v1\nspec: {containers: [{env: [{name: CONNECT_GROUP_ID, value: $(X)}, {name: CONNECT_X, "
    "valueFrom: {secretKeyRef: {name: s, key: x}}}], envFrom: [{configMapRef: {name: m}}]}]}\n---\nkind: ConfigMap\n"
    "apiVersion: v1\nmetadata: {name: m}\ndata: {c.json: '{\"connector.class\": 1}', CONNECT_A: b}\n---\nkind: Secret\n"
    "apiVersion: v1\nmetadata: {name: s}\ndata: {x: eA==}\n",
]
_TEXTS += [
    "ARG X=1\nFROM a AS b\nENV CONNECT_GROUP_ID=\"$X\" \\\n  CONNECT_X='y'\nFROM b\n",
    '#!/bin/sh\nX=\'a\'\ncurl -d \'{"name": "\'$X\'", "config": {"connector.class": "C"}}\' h/connectors\n'
    'curl -X PUT -d "{\\"connector.class\\": \\"$X\\"}" h/connectors/$X/config\ndocker run -e CONNECT_GROUP_ID=$X i\n',
    'X ?= $(Y)\nY := $X\na:\n\t@curl -X PUT h/connectors/$(X)/config -d \'{"connector.class": "$(Y) $$1"}\' \\\n'
    "\t$(shell x)\n",
    "include: [a, {path: [b], env_file: c}]\nservices: {a: {environment: [X=1], command: [sh, \"curl -d '"
    '{\\"connector.class\\": \\"\'$$X\'\\"}\'"]}}\n',
    "- env: [{name: X, value: '${{ secrets.X }}'}]\n  uri: {url: h/connectors/a/config, body: {connector.class: x}}\n"
    "  connectors: {a: {config: {connector.class: '{{ b }}'}}, c: [{name: d, config: {connector.class: e}, y: f}]}\n",
    "docker run --env-file x -eCONNECT_GROUP_ID=$1 -e CONNECT_X `\n -e CONNECT_Y=`x`\nif x; then\nX=(1)\nfi\nX+=1\n"
    'read -r Y <<E\n{"connector.class": "$X"}\nE\ncurl -d "$Y" h/connectors/"$X"/config\n',
    'variable "x" { default = "y" }\nresource "a_connector" "b" {\n  config = {\n"connector.class" = "${var.x}" # z\n'
    "a = var.x\n}}",
]
_ENDINGS = [".json", ".properties", ".yaml", ".env", "", ".sh", ".tf", ".dockerfile", ".mk"]
_ODD = [
    "\x00",
    "\ufeff",
    "\ud800",
    "é",
    "²",
    "\x85",
    "\u2028",
    "{",
    "[" * 200,
    "&a",
    "*a",
    "!!python/object:x",
    "\\u12",
    "%",
    "$",
    "${",
    "#",
    '"',
]
_KEPT: list[object] = []


def _spoilt(draw: random.Random, text: str) -> str:
    for _ in range(draw.randrange(4)):
        at = draw.randrange(len(text) + 1)
        text = text[:at] + draw.choice(_ODD) + text[at + draw.randrange(3) :]
    return text


@functools.cache
def _folder() -> Path:
    kept = tempfile.TemporaryDirectory(prefix="scylla-cdc-fuzz-")
    _KEPT.append(kept)
    return Path(kept.name)


def files(draw: random.Random) -> None:
    """No traceback, and a problem or a configuration for each."""
    content = _spoilt(draw, draw.choice(_TEXTS)).encode(draw.choice(_ENCODINGS), "replace")
    if draw.random() < 0.3:
        at = draw.randrange(len(content) + 1)
        content = content[:at] + draw.randbytes(draw.randrange(4)) + content[at:]
    path = _folder() / f"file{draw.choice(_ENDINGS)}"
    path.write_bytes(content)
    _, problems = read_configurations(path, {"X": "x"})
    assert all(str(problem).encode("utf-8", "backslashreplace") for problem in problems)


def variables(draw: random.Random) -> None:
    names = [
        "CONNECT_",
        "CONNECT__",
        "CONNECT_GROUP_ID",
        "CONNECT_A___B",
        "connect_x",
        "",
        "=",
        "CONNECT_É",
        "CONNECT_\x00",
    ]
    environ = {_spoilt(draw, draw.choice(names)): _spoilt(draw, draw.choice(["g", "${env:X}", ""])) for _ in range(4)}
    for variable, text in environment_properties(environ).values():
        assert environ[variable] == text
    variables_of("\n".join(f"{name}={text}" for name, text in environ.items()), environ)


_HOSTS = [
    "db",
    "db.example.",
    "a..b",
    "a" * 70,
    "-x",
    "[::1]",
    "[::1",
    "::1",
    "1.2.3.4",
    "db:9042",
    ":9",
    "db:",
    "x:-1",
    "é.fr",
]


def addresses(draw: random.Random) -> None:
    """What is taken for an address can be looked up: a name with no place in DNS is told before."""
    text = ",".join(_spoilt(draw, draw.choice(_HOSTS)) for _ in range(draw.randrange(4)))
    try:
        points = parse_contact_points(text)
    except Invalid:
        return
    for point in points:
        assert 0 < point.port < 65536
        point.host.encode("idna")


_LINES = [
    "GET /things HTTP/1.1",
    "HEAD / HTTP/1.0",
    "POST /x HTTP/1.1",
    "GET",
    "G\x00T / HTTP/1.1",
    "GET /%ff%00?a=%zz&=&&& HTTP/1.1",
]
_HEADERS = [
    "Host: localhost",
    "Host: [::1",
    "Host: evil.example",
    "Origin: http://[",
    "Origin: null",
    "Origin: http://a:99999999/",
    "Content-Length: -1",
    "Content-Length: 5",
    "Transfer-Encoding: chunked",
    "Authorization: Bearer \xff",
    "Expect: 100-continue",
    "Connection: upgrade",
    ": x",
    "\tfolded",
    "User-Agent: Mozilla/5.0",
]


@functools.cache
def _server() -> HttpServer:
    def said(request: Request) -> object:
        return answer_json({"query": dict(request.query), "parts": dict(request.parts)})

    server = HttpServer("127.0.0.1", 0, [Route("GET", "/{part}", said)], Access())  # type: ignore[arg-type]
    _KEPT.append(server.__enter__())
    return server


def http_requests(draw: random.Random) -> None:
    """Each is answered, or its connection is closed; none with "500", and others are served afterwards."""
    lines = [
        draw.choice(_LINES),
        *draw.sample(_HEADERS, draw.randrange(5)),
        "",
        "",
        draw.choice(["", "5\r\nabc", "hello"]),
    ]
    raw = _spoilt(draw, "\r\n".join(lines)).encode("latin-1", "replace")
    for content in (raw, b"GET /well HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"):
        with socket.create_connection(("127.0.0.1", _server().port), timeout=60) as connection:
            connection.sendall(content)
            if content is raw:
                connection.shutdown(socket.SHUT_WR)
            answer = b""
            try:
                while part := connection.recv(65536):
                    answer += part
            except ConnectionError:
                pass
            assert not answer.startswith(b"HTTP/1.1 500"), answer
    assert answer.startswith(b"HTTP/1.1 200"), answer


def origins(draw: random.Random) -> None:
    """Names that are nobody's are never taken for ours."""
    headers = {}
    for line in draw.sample(_HEADERS, draw.randrange(6)):
        name, _, text = _spoilt(draw, line).partition(": ")
        headers[name] = text
    headers.pop("Host", None)
    if draw.random() < 0.5:
        headers["Host"] = _spoilt(draw, "evil.example:80")
    refused = foreign(
        headers, draw.choice(["127.0.0.1", "::1", "0.0.0.0", "db.example"]), with_token=draw.random() < 0.5
    )
    assert refused is None or len(refused) < 400


FUZZERS = {
    "files": files,
    "variables": variables,
    "addresses": addresses,
    "http-requests": http_requests,
    "origins": origins,
}
