"""Recorded answers of Java's classes, and ours to the same cases, in one form.

A file holds cases and, with each, what Java answered; its texts stand once in a list and are named by their number.
`python -m tests.smt.connect.recorded CLASSPATH [NAME ...]` writes the files, or those of some names, anew; CLASSPATH
holds `java/Answers.class`, connect-transforms, connect-runtime and connect-json 4.1.1, debezium-core 2.7.4.Final, and
what they need.
"""

from __future__ import annotations

import base64
import gzip
import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from connector.formats.json_converter import to_json
from connector.java_numbers import Float32, WideDouble, is_plain
from smt import (
    Header,
    Place,
    Record,
    SmtError,
    SmtOptionError,
    Transform,
    build_predicate,
    build_transform,
    chosen,
    simple_text,
)
from tests.smt.connect.random_cases import (
    PLAIN,
    SIDED,
    Json,
    chain_cases,
    connect_cases,
    converter_cases,
    debezium_cases,
)
from tests.smt.connect.regex_cases import regex_cases

HERE = Path(__file__).parent
#: The name of each file, and its cases.
FILES: dict[str, Any] = {
    **{
        name: lambda name=name: connect_cases(
            name, 60 if name in ("InsertHeader", "TimestampConverter", "Cast") else 40
        )
        for name in (*SIDED, *PLAIN)
    },
    "converters": converter_cases,
    "chains": lambda: chain_cases(120),
    "expressions": regex_cases,
    "ExtractNewRecordState": lambda: debezium_cases("ExtractNewRecordState", 80),
    "ByLogicalTableRouter": lambda: debezium_cases("ByLogicalTableRouter", 50),
}


def ask_java(cases: Iterable[Json], classpath: str) -> list[Any]:
    """What Java's classes answer."""
    lines = "".join(json.dumps(case) + "\n" for case in cases)
    command = ["java", "-Duser.timezone=UTC", "-Duser.language=en", "-Duser.country=US", "-cp", classpath, "Answers"]
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def saved(name: str, pairs: list[tuple[Json, Any]]) -> None:
    text = json.dumps(pairs, ensure_ascii=False, separators=(",", ":"))
    with gzip.GzipFile(HERE / f"{name}.json.gz", "wb", mtime=0) as file:
        file.write(text.encode())


def read(name: str) -> list[tuple[Json, Any]]:
    return [tuple(pair) for pair in json.loads(gzip.decompress((HERE / f"{name}.json.gz").read_bytes()))]


def decoded(schema: Json | None, payload: Any) -> Any:
    """A payload of JSON as the connector holds it."""
    if payload is None or schema is None:
        return WideDouble(payload) if isinstance(payload, float) and not is_plain(payload) else payload
    kind = schema["type"]
    if kind == "struct":
        return {field["field"]: decoded(field, payload.get(field["field"])) for field in schema["fields"]}
    if kind == "array":
        return [decoded(schema["items"], item) for item in payload]
    if kind == "map":
        return {key: decoded(schema["values"], value) for key, value in payload.items()}
    if kind == "bytes":
        return base64.b64decode(payload)
    if kind == "float":
        import struct

        return Float32(struct.unpack(">f", struct.pack(">f", payload))[0])
    if kind == "double":
        return payload if is_plain(payload) else WideDouble(payload)
    return payload


def record_of(given: Json) -> Record:
    def side(part: Any) -> tuple[Json | None, Any]:
        return (None, None) if part is None else (part["schema"], decoded(part["schema"], part["payload"]))

    key_schema, key = side(given["key"])
    value_schema, value = side(given["value"])
    headers: list[tuple[str, Any]] = []
    for name, part in given["headers"]:
        schema, content = side(part)
        headers.append(Header(name, content, schema))
    place = Place(given.get("partition"), given.get("timestamp"), given.get("offset"))
    return Record(given["topic"], key, value, headers, key_schema, value_schema, place)


def answers(case: Json) -> Iterator[Any]:
    """Ours, in the form of Java's; one answer if the configuration is refused."""
    steps: list[Any] = []
    try:
        for step in case["chain"]:
            built: Transform = build_transform(
                step["type"],
                {"compatibility": "strict"} | step["options"] if "NewRecord" in step["type"] else step["options"],
            )
            apply = built.apply
            if "predicate" in step:
                named = step["predicate"]
                apply = chosen(apply, build_predicate(named["type"], named["options"]), step.get("negate", False))
            steps.append(apply)
    except SmtOptionError as error:
        yield {"refused": str(error)}
        return
    for given in case["records"]:
        yield _answer(steps, record_of(given))


def _answer(steps: list[Any], record: Record) -> Any:
    current: Record | None = record
    try:
        for apply in steps:
            current = apply(current)
            if current is None:
                return {"dropped": True}
    except SmtError as error:
        return {"error": str(error)}
    assert current is not None
    return {
        "topic": current.topic,
        "key": _text(current.key_schema, current.key),
        "value": _text(current.value_schema, current.value),
        "headers": [
            [header[0], simple_text(schema := getattr(header, "schema", None), header[1]), _text(schema, header[1])]
            for header in current.headers
        ],
    }


def _text(schema: Json | None, value: Any) -> str | None:
    if schema is None and value is None:
        return None
    return to_json({"schema": schema, "payload": value}).decode()


def same(ours: Any, java: Any) -> bool:
    """Whether two answers are equal; the order of members of objects without a schema is Java's HashMap's."""
    if java.get("written") is False:
        # The transform did its work, and JsonConverter refuses what it made: another converter may take it.
        return "dropped" not in ours
    if "error" in java:
        return "error" in ours or "refused" in ours
    if "error" in ours or "refused" in ours or "dropped" in java or "dropped" in ours:
        return bool(ours == java)
    return bool(
        ours["topic"] == java["topic"]
        and _same_text(ours["key"], java["key"])
        and _same_text(ours["value"], java["value"])
        and len(ours["headers"]) == len(java["headers"])
        and all(
            one[0] == two[0] and (one[1] == two[1] or (two[1] or "").startswith("{")) and _same_text(one[2], two[2])
            for one, two in zip(ours["headers"], java["headers"], strict=True)
        )
    )


def _same_text(ours: str | None, java: str | None) -> bool:
    if ours == java or ours is None or java is None:
        return ours == java
    return java.startswith('{"schema":null') and json.loads(ours) == json.loads(java)


if __name__ == "__main__":
    wanted = sys.argv[2:] or list(FILES)
    made = [(file, case) for file in wanted for case in FILES[file]()]
    pairs = list(zip(made, ask_java([case for _, case in made], sys.argv[1]), strict=True))
    for file in wanted:
        saved(file, [(case, answer) for (name, case), answer in pairs if name == file])
