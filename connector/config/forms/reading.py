"""Configuration files in every form that people have: JSON, ``.properties``, YAML, variables.

In: a path. Out: the configurations in it, or problems with the place of what cannot be read. The name of a file decides
its form; without a name that tells, its first lines do.
"""

from __future__ import annotations

import codecs
import json
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

from connector.config.contents import file_content, why_unreadable
from connector.config.environment import variables_of, worker_properties
from connector.config.forms.containers import unwrapped
from connector.config.forms.no_json import no_json
from connector.config.forms.repeated import Repeated, repeated_pairs
from connector.config.forms.templates import template_hint
from connector.config.forms.wrapped import Wrapped
from connector.config.java_properties import decoded, properties_pairs
from connector.errors import Problem

#: Of a number in JSON: more digits than any bound has, and less than Python refuses to read.
_LONGEST_NUMBER = 1_000
_FORMS: dict[str, Form] = {
    **{".json": "JSON", ".properties": "properties", ".yaml": "YAML", ".yml": "YAML", ".env": "env"},
    **{".dockerfile": "Dockerfile", ".tf": "Terraform", ".mk": "Makefile", ".sql": "ksqlDB", ".ksql": "ksqlDB"},
    # A page that says how to post a connector has the same lines.
    **dict.fromkeys((".sh", ".bash", ".zsh", ".fish", ".ps1", ".http", ".md", ".adoc", ".rst"), "script"),
}
_PROGRAMS = frozenset((".py", ".js", ".mjs", ".ts", ".java", ".kt", ".go", ".rb", ".bat", ".cmd"))
_FROM = re.compile(r"\A(?:[ \t]*(?:#[^\n]*|ARG[ \t][^\n]*)?\r?\n)*[ \t]*FROM[ \t]", re.IGNORECASE)
_SCRIPT = re.compile(r"#![ \t]*/|\s*(?:curl|docker|podman)\s")

Form = Literal["JSON", "properties", "YAML", "env", "Dockerfile", "script", "Makefile", "Terraform", "ksqlDB"]


def read_configurations(
    path: str | os.PathLike[str], environ: Mapping[str, str]
) -> tuple[list[Wrapped], list[Problem]]:
    """Every configuration in a file; instead of raising, problems say why it cannot be read."""
    file = os.fspath(path)
    content, problems = _bytes(file)
    if content is None:
        return [], problems
    return _parsed(Path(file), environ, file, content, is_whole=True)


def _parsed(
    outer: Path, environ: Mapping[str, str], file: str, content: bytes, *, is_whole: bool = False
) -> tuple[list[Wrapped], list[Problem]]:
    """What a file holds that may be inside of another one, the ``outer``."""
    form = _form(file, content)
    if form == "env" or form == "properties":
        return _properties(file, content, environ, variables_only=form == "env")
    if form in ("Dockerfile", "script", "Makefile", "Terraform", "ksqlDB"):
        # Most have no need of it.
        from connector.config.forms.programs import configurations_of

        return configurations_of(file, form, decoded(content)[0], environ, outer.parent)
    documents, problems = _yaml(file, content, is_whole) if form == "YAML" else _json(file, content, is_whole)
    if problems:
        return [], problems
    found = unwrapped(documents, outer, environ, partial(_parsed, outer, environ))
    return found or [Wrapped({})], []


def read_json(path: str | os.PathLike[str]) -> tuple[Any, list[Problem]]:
    """The JSON in a file; instead of raising, a problem says where it is not JSON."""
    file = os.fspath(path)
    content, problems = _bytes(file)
    if content is None:
        return None, problems
    documents, problems = _json(file, content, is_whole=True)
    return (documents[0] if documents else None), problems


def _bytes(file: str) -> tuple[bytes | None, list[Problem]]:
    try:
        content = file_content(Path(file))
        if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            # What `>` of Windows' PowerShell writes; Kafka Connect takes JSON of it, too.
            content = content.decode("utf-16").encode()
        return content, []
    except OSError as error:
        return None, [Problem("file", why_unreadable(error), file=file)]
    except UnicodeDecodeError as error:
        return None, [Problem("file", f"Is not UTF-16 text: byte {error.start} cannot be read", file=file)]


def _form(file: str, content: bytes) -> Form:
    named = _FORMS.get(Path(file).suffix.lower())
    if named:
        return named
    text, _ = decoded(content)
    if Path(file).name.lower() in ("dockerfile", "containerfile") or _FROM.match(text):
        return "Dockerfile"
    if Path(file).name.lower() in ("makefile", "gnumakefile"):
        return "Makefile"
    if _SCRIPT.match(text):
        return "script"
    if variables_of(text, {}) is not None:
        return "env"
    looks: dict[str | None, Form] = {"YAML": "YAML", "a .properties file": "properties"}
    return looks.get(_other_form(text), "JSON")


def _other_form(text: str) -> str | None:
    """What a text is that is no JSON, where its first line tells."""
    lines = (line for line in text.splitlines() if line.strip() and not line.lstrip().startswith(("#", "!")))
    first = next(lines, "")
    if re.match(r"(---\s*$|[\w.\-]+:(\s|$)|- )", first):
        return "YAML"
    return "a .properties file" if re.match(r"\s*[\w.\-]+\s*=", first) else None


def _json(file: str, content: bytes, is_whole: bool) -> tuple[list[Any], list[Problem]]:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return [], [Problem("file", f"Is not UTF-8 text: byte {error.start} cannot be read", file=file)]
    try:
        # Numbers of any length keep their digits, so that their property can say what is wrong with them.
        found = json.loads(
            text,
            object_pairs_hook=partial(_object, text) if is_whole else repeated_pairs,
            parse_int=lambda digits: int(digits[:_LONGEST_NUMBER]),
        )
        if "\\u" in text:
            json.dumps(found, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        other = _other_form(text)
        if other:
            ending = ".yaml" if other == "YAML" else ".properties"
            return [], [Problem("JSON", f"Is not JSON: it looks like {other}", None, f"name it so: {ending}", file)]
        if Path(file).suffix.lower() in _PROGRAMS:
            hint = "give the JSON that it posts to Kafka Connect; of a shell's script it is read"
            return [], [Problem("file", "Is a program, and only running it tells what it posts", None, hint, file)]
        if not text.strip():
            return [], [Problem("JSON", "Is not JSON: it is empty", None, template_hint(text), file)]
        wrong = no_json(error)
        return [], [
            Problem("JSON", f"Is not JSON: {wrong.at_its_line()}", None, wrong.hint or template_hint(text), file)
        ]
    except UnicodeEncodeError:
        return [], [Problem("JSON", "Holds a text that is none: half of a \\u pair (\\ud800 to \\udfff)", file=file)]
    except RecursionError:
        return [], [Problem("JSON", "Is not JSON that can be read: nested too deeply", file=file)]
    return [found], []


def _object(text: str, pairs: Sequence[tuple[str, Any]]) -> Repeated:
    """One of a file's objects. A name that others have as well may stand on any line."""
    found, lines = repeated_pairs(pairs), dict[str, list[int]]()
    for name in found.repeated:
        places = re.finditer(re.escape(json.dumps(name, ensure_ascii=False)) + r"\s*:", text)
        lines[name] = [text.count("\n", 0, place.start()) + 1 for place in places]
    counts = Counter(name for name, _ in pairs)
    found.lines = {name: each for name, each in lines.items() if len(each) == counts[name]}
    return found


def _yaml(file: str, content: bytes, is_whole: bool) -> tuple[list[Any], list[Problem]]:
    # The library is loaded for a file that is YAML.
    from connector.config.forms.yaml_text import yaml_documents

    text = ""
    try:
        text = content.decode("utf-8-sig")
        return yaml_documents(text, tells_lines=is_whole), []
    except UnicodeDecodeError as error:
        return [], [Problem("file", f"Is not UTF-8 text: byte {error.start} cannot be read", file=file)]
    except ValueError as error:
        return [], [Problem("YAML", f"Is not YAML: {error}", None, template_hint(text), file)]


def _properties(
    file: str, content: bytes, environ: Mapping[str, str], *, variables_only: bool
) -> tuple[list[Wrapped], list[Problem]]:
    text, as_utf8 = decoded(content)
    variables = variables_of(text, environ, any_names=variables_only)
    if variables is not None:
        properties, notes = worker_properties(variables)
        return [Wrapped(properties, "variables", notes)], []
    if variables_only:
        return [], [Problem("file", "Must hold lines NAME=value, some of them with names CONNECT_…", file=file)]
    try:
        pairs = properties_pairs(text)
    except ValueError as error:
        return [], [Problem("properties", f"Is not a .properties file that Java reads: {error}", file=file)]
    wrapped = Wrapped(dict(pairs))
    for name, count in Counter(name for name, _ in pairs).items():
        if count > 1:
            wrapped.notes.append((name, f"is given {count} times: the last one counts, as in Java"))
    if as_utf8:
        beyond = [name for name, value in pairs if not (name + value).isascii()]
        wrapped.notes += [(name, "is read as UTF-8; Java's programs read such a file as ISO-8859-1") for name in beyond]
    return [wrapped], []
