"""The files of a compose project: the one that is given, those that it includes, and the one that is read over it.

In: where a compose file lies, the environment. Out: services, each with the project whose variables stand for names in
it, and the paths that its own are relative to.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from connector.config.contents import file_text
from connector.config.env_files import env_file_variables
from connector.config.forms.shapes import listed, mapping
from connector.config.forms.wrapped import Wrapped
from connector.config.substitution import Variables, substituted
from connector.errors import Problem

#: Beside a file of these names compose reads another one over it.
_DEFAULT_NAMES = ("compose", "docker-compose")


@dataclass(frozen=True, slots=True)
class Project:
    """Where a compose file lies, and what stands for variables in it: the process's, then those of `.env`."""

    file: Path
    variables: Variables

    @classmethod
    def of(cls, file: Path, environ: Mapping[str, str]) -> Project:
        return cls(file, Variables(environ, _variables_of(file.parent / ".env", environ)))

    def beside(self, path: str) -> Path:
        try:
            return self.file.parent / substituted(path, self.variables, plain=True)
        except ValueError:
            return self.file.parent / path


def services_of(path: Path) -> Mapping[str, Any] | None:
    """None if it is no compose file that can be read."""
    services = mapping(_document_of(path)).get("services")
    return services if isinstance(services, Mapping) else None


def services_over(project: Project, wrapped: Wrapped) -> Mapping[str, Any]:
    """Of the file beside it that compose reads over it by itself."""
    if project.file.stem not in _DEFAULT_NAMES:
        return {}
    for stem in _DEFAULT_NAMES:
        for ending in (".yaml", ".yml"):
            beside = project.file.with_name(f"{stem}.override{ending}")
            if not beside.exists():
                continue
            services = services_of(beside)
            if services is None:
                text = f"Cannot be read, and compose reads it over {project.file.name}"
                hint = "give what compose makes of both: `docker compose config > all.yaml`"
                wrapped.problems.append(Problem(beside.name, text, None, hint))
                return {}
            wrapped.notes.append((beside.name, f"is read over {project.file.name}, as compose does"))
            return services
    return {}


def included(
    document: Mapping[str, Any], project: Project, problems: list[Problem], seen: set[Path] | None = None
) -> Iterator[tuple[Mapping[str, Any], Project]]:
    """Of all files that `include` names, the innermost first. Variables of the project count over theirs."""
    given = document.get("include")
    seen = {_absolute(project.file)} if seen is None else seen
    for each in given if isinstance(given, list) else ():
        options = each if isinstance(each, Mapping) else {"path": each}
        paths = [_absolute(project.beside(str(path))) for path in listed(options.get("path"))]
        if not paths:
            continue
        folder = options.get("project_directory")
        inside = paths[0].parent if folder is None else _absolute(project.beside(str(folder)))
        variables = dict[str, str]()
        for path in listed(options.get("env_file")) or [inside / ".env"]:
            variables |= _variables_of(project.beside(str(path)), project.variables.environ)
        known = Variables(project.variables.environ, {**variables, **project.variables.of_file})
        for path in (path for path in paths if path not in seen):
            # Each once: files may include each other.
            seen.add(path)
            content = _document_of(path)
            if not isinstance(content, Mapping):
                problems.append(Problem("include", f"Is {path}, which is no compose file that can be read"))
                continue
            inner = Project(inside / path.name, known)
            yield from included(content, inner, problems, seen)
            yield mapping(content.get("services")), inner


def _absolute(path: Path) -> Path:
    """Without asking the system, which takes not everything for a path."""
    return Path(os.path.abspath(path))


def _variables_of(path: Path, environ: Mapping[str, str]) -> dict[str, str]:
    text = file_text(path)
    known = None if text is None else env_file_variables(text, Variables(environ))
    return known or {}


def _document_of(path: Path) -> Any:
    from connector.config.forms.yaml_text import yaml_documents

    text = file_text(path)
    try:
        documents = yaml_documents(text) if text is not None else []
    except ValueError:
        return None
    return documents[0] if documents else None
