"""Kafka Connect in plain resources of Kubernetes: the variables of pods, and files in ConfigMaps.

In: all resources of a file, since pods take variables from maps beside them. Out: workers and connectors. What stands
in a map or a Secret that the file does not have is a reference to the variable of that name.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from connector.config.environment import OF_A_WORKER, PREFIX, is_debezium_image, is_idle, worker_properties
from connector.config.forms.shapes import mapping, mappings, name_of
from connector.config.forms.worker import worker_with_references
from connector.config.forms.wrapped import Wrapped
from connector.config.substitution import reference
from connector.errors import Problem

_WITH_PODS = frozenset(("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "DeploymentConfig", "Pod"))
_MAPS = frozenset(("ConfigMap", "Secret"))
#: In a file of a map, what makes it a connector's or a worker's.
_OF_INTEREST = OF_A_WORKER | {"connector.class", "scylla.cluster.ip.addresses"}
_NOT_HERE = f"is not in this file: {PREFIX} variables that it has are taken from the environment here"
_EXPANSION = re.compile(r"\$\$|\$\(([A-Za-z_.\-][A-Za-z0-9_.\-]*)\)")

#: What a file of a map holds, by its name.
Parse = Callable[[str, bytes], tuple[list[Wrapped], list[Problem]]]


@dataclass(slots=True)
class _Maps:
    """ConfigMaps and Secrets of a file by kind and name; ``taken`` are those whose entries are a pod's variables."""

    entries: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)
    taken: set[tuple[str, str]] = field(default_factory=set)


def in_kubernetes(resources: Sequence[Mapping[str, Any]], parse: Parse) -> list[Wrapped]:
    """Workers that pods run, then what the maps hold that no pod takes for its variables."""
    maps = _Maps({(str(each["kind"]), name_of(each)): _data(each) for each in resources if each["kind"] in _MAPS})
    pods = [wrapped for each in resources if each["kind"] in _WITH_PODS for wrapped in _workers(each, maps)]
    found = _once(pods)
    for key, entries in maps.entries.items():
        if key in maps.taken:
            continue
        if not pods and any(name.startswith(PREFIX) for name in entries):
            content, notes = worker_properties(entries)
            found.append(Wrapped(content, key[1], notes))
        found += [each for name, text in entries.items() for each in _file(key[1], name, text, parse)]
    return found


def _data(resource: Mapping[str, Any]) -> dict[str, str]:
    found = {}
    for name, value in mapping(resource.get("data")).items():
        if resource["kind"] == "Secret":
            try:
                value = base64.b64decode(str(value)).decode()
            except ValueError:
                continue  # a key store, say
        found[str(name)] = _text(value)
    return found | {str(name): _text(value) for name, value in mapping(resource.get("stringData")).items()}


def _text(value: Any) -> str:
    """Nothing is an empty text."""
    return "" if value is None else str(value)


# -- pods ------------------------------------------------------------------------------------------------------


def _workers(resource: Mapping[str, Any], maps: _Maps) -> Iterator[Wrapped]:
    spec = mapping(resource.get("spec"))
    if resource["kind"] != "Pod":
        spec = mapping(mapping(spec.get("template")).get("spec"))
    for container in mappings(spec.get("containers")):
        variables, elsewhere = _variables(container, maps)
        missing = [f"{kind} {name}" for _, kind, name in _whole_maps(container) if (kind, name) not in maps.entries]
        image = str(container.get("image") or "")
        if not any(each.startswith(PREFIX) for each in variables) and not is_debezium_image(image):
            continue
        content, notes = worker_with_references(variables, image, elsewhere)
        if content.keys() & OF_A_WORKER:
            notes += [(f"envFrom {each}", _NOT_HERE) for each in missing]
            yield Wrapped(content, f"{resource['kind']} {name_of(resource)}", notes)


def _once(workers: Iterable[Wrapped]) -> list[Wrapped]:
    """Of workers that are told the same, one."""
    found: list[Wrapped] = []
    for one in workers:
        if not any(_works(one) == _works(other) for other in found):
            found.append(one)
    return found


def _works(worker: Wrapped) -> dict[str, str]:
    return {name: text for name, text in worker.content.items() if not is_idle(name)}


def _variables(container: Mapping[str, Any], maps: _Maps) -> tuple[dict[str, str], dict[str, str]]:
    """Variables, and what is to be said of those whose value stands elsewhere."""
    found, elsewhere = dict[str, str](), dict[str, str]()
    for prefix, kind, of_map in _whole_maps(container):
        if (key := (kind, of_map)) in maps.entries:
            maps.taken.add(key)
            found |= {f"{prefix}{name}": text for name, text in maps.entries[key].items()}
    for each in mappings(container.get("env")):
        name = str(each.get("name", ""))
        origin = mapping(each.get("valueFrom"))
        text = _from_maps(origin, maps) if origin else _expanded(_text(each.get("value")), found)
        if text is None:
            elsewhere[name] = f"stands elsewhere ({_place(origin)})"
        found[name] = reference(name) if text is None else text
    return found, elsewhere


def _whole_maps(container: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Prefix of its variables, kind and name of each that is taken as a whole."""
    for source in mappings(container.get("envFrom")):
        for member, kind in (("configMapRef", "ConfigMap"), ("secretRef", "Secret")):
            if name := mapping(source.get(member)).get("name"):
                yield str(source.get("prefix") or ""), kind, str(name)


def _from_maps(origin: Mapping[str, Any], maps: _Maps) -> str | None:
    for member, kind in (("configMapKeyRef", "ConfigMap"), ("secretKeyRef", "Secret")):
        wanted = mapping(origin.get(member))
        if wanted:
            return maps.entries.get((kind, str(wanted.get("name", ""))), {}).get(str(wanted.get("key", "")))
    return None


def _place(origin: Mapping[str, Any]) -> str:
    for member, kind in (("configMapKeyRef", "ConfigMap"), ("secretKeyRef", "Secret")):
        wanted = mapping(origin.get(member))
        if wanted:
            return f"{kind} {wanted.get('name')}, key {wanted.get('key')}"
    return ", ".join(map(str, origin))


def _expanded(text: str, known: Mapping[str, str]) -> str:
    """``$(NAME)`` is a variable that was given before, and otherwise itself."""

    def replaced(match: re.Match[str]) -> str:
        return "$" if match.group() == "$$" else known.get(match[1], match.group())

    return _EXPANSION.sub(replaced, text)


# -- files in maps ---------------------------------------------------------------------------------------------


def _file(of_map: str, name: str, text: str, parse: Parse) -> Iterator[Wrapped]:
    """The connectors and workers in one entry: most are other programs'."""
    if not any(each in text for each in _OF_INTEREST):
        return
    found, problems = parse(name, text.encode(errors="replace"))
    if problems and "connector.class" in text and problems[0].property in ("JSON", "YAML"):
        # A connector with a slip, not a script or the configuration of a log that mentions one.
        yield Wrapped({}, f"{of_map}/{name}", problems=[Problem(f"{of_map}/{name}", each.problem) for each in problems])
    for each in found:
        content = each.content if isinstance(each.content, Mapping) else {}
        if (content.keys() | mapping(content.get("config")).keys()) & _OF_INTEREST:
            each.label = f"{of_map}/{name}"
            yield each
