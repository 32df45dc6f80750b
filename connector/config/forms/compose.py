"""The worker of a compose file: the service that has ``CONNECT_…`` variables, or those of Debezium's image.

In: the content of a file, and its project. Out: the worker's properties, with the variables that
`environment`, `env_file` and `extends` say, as `docker compose` puts them together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from connector.config.contents import file_content, why_unreadable
from connector.config.env_files import env_file_variables, raw_variables
from connector.config.environment import (
    OF_A_WORKER,
    PREFIX,
    is_debezium_image,
    is_idle,
    is_of_debezium,
    worker_properties,
)
from connector.config.forms.compose_files import Project, included, services_of, services_over
from connector.config.forms.shapes import as_text, listed, mapping
from connector.config.forms.wrapped import Wrapped
from connector.config.forms.written_over import Reset, writes_over
from connector.config.substitution import reference, substituted
from connector.errors import Problem

_MOST_EXTENDED = 20
#: Stands for a dollar that compose leaves to a shell.
_OF_SHELL = "\ue002"


@dataclass(slots=True)
class _Service:
    """What a service's container is given. Files say only what no `environment` does, be it of a part that is extended
    or overridden."""

    environment: dict[str, str] = field(default_factory=dict)
    of_files: dict[str, str] = field(default_factory=dict)
    image: str = ""
    problems: list[Problem] = field(default_factory=list)

    @property
    def variables(self) -> dict[str, str]:
        return self.of_files | self.environment

    def of_worker(self) -> bool:
        return any(name.startswith(PREFIX) for name in self.variables) or (
            bool(self.variables) and is_debezium_image(self.image)
        )

    def perhaps_of_worker(self) -> bool:
        return is_of_debezium(self.variables) and any(name.endswith("_STORAGE_TOPIC") for name in self.variables)


def compose_worker(document: Mapping[str, Any], project: Project) -> Wrapped:
    """The one worker there is; several services of one Connect cluster are one."""
    wrapped = Wrapped({})
    services = mapping(document.get("services"))
    unreadable = list[Problem]()
    read = dict[str, _Service]()
    for part, where in (*included(document, project, unreadable), (services, project)):
        for name, service in part.items():
            if isinstance(service, Mapping):
                read[name] = _with(read[name], service, where) if name in read else _read(part, name, where)
    overriding = services_over(project, wrapped)
    read = {name: _over(each, overriding, name, project) for name, each in read.items()}
    found = {name: each for name, each in read.items() if each.of_worker()}
    found = found or {name: each for name, each in read.items() if each.perhaps_of_worker()}
    properties = {name: worker_properties(each.variables, each.image) for name, each in found.items()}
    # Programs that show a worker have variables with the prefix as well.
    workers = {name: each for name, each in properties.items() if each[0].keys() & OF_A_WORKER} or properties
    differences = sorted({name for one in workers.values() for name in _differing(one[0], workers)})
    if not workers or differences:
        wrapped.label = ", ".join(workers)
        wrapped.problems.append(_not_one(list(workers), differences, _mounted(services)))
        wrapped.problems += [problem for each in read.values() for problem in each.problems if not workers]
        wrapped.problems += unreadable if not workers else []
        return wrapped
    wrapped.label, *same = workers
    wrapped.content, notes = workers[wrapped.label]
    wrapped.content = {
        name: text for name, text in wrapped.content.items() if not (is_idle(name) and _is_nowhere(text, project))
    }
    wrapped.notes += notes
    wrapped.notes += [(f"services.{name}", f"has no effect here: it says what {wrapped.label} says") for name in same]
    wrapped.problems += read[wrapped.label].problems
    return wrapped


def text_of_command(text: str, project: Project) -> str:
    """What a shell in a container reads, whose own dollars are `$$`; as it stands where compose would refuse it."""
    try:
        found = substituted(text.replace("$$", _OF_SHELL), project.variables)
    except ValueError:
        found = text
    return found.replace(_OF_SHELL, "$")


def _not_one(names: list[str], differences: list[str], mounted: list[str]) -> Problem:
    problem = f"Must have one service with {PREFIX} variables, and has {len(names)}: {', '.join(names) or 'none'}"
    if names:
        hint = f"a file with the one that is meant: they differ in {', '.join(differences)}"
    elif mounted:
        hint = f"give the file that a service mounts: {', '.join(mounted)}"
    else:
        hint = f"a service of Kafka Connect, with {PREFIX}BOOTSTRAP_SERVERS in its environment or env_file"
    return Problem("services", problem, None, hint)


def _mounted(services: Mapping[str, Any]) -> list[str]:
    """Files of properties, which images without variables are given."""
    mounts = [each for service in services.values() if isinstance(service, Mapping) for each in _volumes(service)]
    return list(dict.fromkeys(each for each in mounts if each.endswith(".properties")))


def _volumes(service: Mapping[str, Any]) -> Iterator[str]:
    volumes = service.get("volumes")
    for each in volumes if isinstance(volumes, list) else ():
        yield str(each.get("source")) if isinstance(each, Mapping) else str(each).partition(":")[0]


def _differing(one: Mapping[str, str], others: Mapping[str, tuple[dict[str, str], Any]]) -> set[str]:
    """Which properties that work say another thing elsewhere."""
    names = {name for other, _ in others.values() for name in other} | one.keys()
    return {
        name
        for name in names
        if not is_idle(name) and any(other.get(name) != one.get(name) for other, _ in others.values())
    }


def _is_nowhere(text: str, project: Project) -> bool:
    name = text.strip().removeprefix("${env:").removesuffix("}")
    return text.strip() == reference(name) and name not in project.variables.environ


# -- one service -----------------------------------------------------------------------------------------------


def _read(services: Mapping[str, Any], name: str, project: Project, depth: int = 0) -> _Service:
    """What it says itself counts over what it extends."""
    service = services.get(name)
    found = _Service()
    if not isinstance(service, Mapping):
        found.problems.append(Problem("extends", f"There is no service {name} in {project.file}"))
        return found
    extended = service.get("extends")
    if extended is not None and not isinstance(extended, Reset) and depth < _MOST_EXTENDED:
        found = _extended(services, extended, project, depth)
    return _with(found, service, project)


def _extended(services: Mapping[str, Any], extended: Any, project: Project, depth: int) -> _Service:
    if isinstance(extended, str):
        extended = {"service": extended}
    name = str(extended.get("service") or "") if isinstance(extended, Mapping) else ""
    file = extended.get("file") if isinstance(extended, Mapping) else None
    if file is None:
        return _read(services, name, project, depth + 1)
    path = project.beside(str(file))
    content = services_of(path)
    if content is None:
        problem = f"Is {path}, which is no compose file that can be read"
        return _Service(problems=[Problem("extends.file", problem)])
    return _read(content, name, Project(path, project.variables), depth + 1)


def _with(found: _Service, service: Mapping[str, Any], project: Project) -> _Service:
    if writes_over(service):
        found = _Service()
    image = service.get("image")
    found.image = str("" if isinstance(image, Reset) else image or found.image)
    if writes_over(service.get("env_file")):
        found.of_files.clear()
    if writes_over(service.get("environment")):
        found.environment.clear()
    for path, required, raw in _env_files(service.get("env_file"), project):
        _take_env_file(found, path, required, raw, project)
    for variable, value in _environment(service.get("environment")):
        if isinstance(value, Reset):
            found.environment.pop(variable, None)
            continue
        try:
            text = _handed_on(variable, project) if value is None else substituted(value, project.variables)
        except ValueError as error:
            hint = "`$$` stands for a `$` in a compose file, and ${NAME:-default} for a variable"
            found.problems.append(Problem(variable, f"Has {error}", None, hint))
            continue
        if text is not None:
            found.environment[variable] = text
    return found


def _over(found: _Service, overriding: Mapping[str, Any], name: str, project: Project) -> _Service:
    service = overriding.get(name)
    if isinstance(service, Reset):
        return _Service()
    return _with(found, service, project) if isinstance(service, Mapping) else found


def _environment(given: Any) -> Iterator[tuple[str, str | Reset | None]]:
    """A map, or a list of ``NAME=value``; None: the process's own variable is handed on."""
    if isinstance(given, list):
        for item in given:
            name, equals, value = str(item).partition("=")
            yield name, value if equals else None
    elif isinstance(given, Mapping):
        for name, value in given.items():
            yield str(name), value if value is None or isinstance(value, Reset) else as_text(value)


def _handed_on(variable: str, project: Project) -> str | None:
    return None if project.variables.value(variable) is None else project.variables.text(variable)


def _env_files(given: Any, project: Project) -> Iterator[tuple[Path, bool, bool]]:
    """Path, whether it must be there, whether it is taken as it is."""
    for each in () if isinstance(given, Reset) else listed(given):
        options = each if isinstance(each, Mapping) else {"path": each}
        path = project.beside(str(options.get("path") or ""))
        yield path, options.get("required") is not False, options.get("format") == "raw"


def _take_env_file(found: _Service, path: Path, required: bool, raw: bool, project: Project) -> None:
    try:
        text = file_content(path).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        if required or not isinstance(error, FileNotFoundError):
            reason = why_unreadable(error) if isinstance(error, OSError) else "Is not UTF-8 text"
            found.problems.append(Problem("env_file", f"{path} cannot be read: {reason}"))
        return
    variables = (raw_variables if raw else env_file_variables)(text, project.variables)
    if variables is None:
        found.problems.append(Problem("env_file", f"{path} must hold lines NAME=value alone"))
    else:
        found.of_files |= variables
