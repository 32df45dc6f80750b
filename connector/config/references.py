"""References to secrets, ``${provider:path:key}``: who answers each, and what it answers.

In: documents and the environment. Out: the documents' ``texts``, resolved; problems for what cannot be.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from connector.config.document import PUBLIC_NAMES, REFERENCE, Document
from connector.config.files import file_content
from connector.config.java_properties import java_properties
from connector.config.secret import learn, learn_resolved
from connector.errors import Problem

_PROVIDERS = ("env", "file", "directory")
_PROVIDER_CLASSES = {
    "EnvVarConfigProvider": "env",
    "FileConfigProvider": "file",
    "DirectoryConfigProvider": "directory",
}


def provider_names(worker: Document) -> dict[str, str]:
    """Which provider each name in ``${name:…}`` means, including those the worker file names itself."""
    names = {provider: provider for provider in _PROVIDERS}
    for alias in worker.written.get("config.providers", "").split(","):
        alias = alias.strip()
        if not alias:
            continue
        class_name = worker.written.get(f"config.providers.{alias}.class", "")
        known = _PROVIDER_CLASSES.get(class_name.rsplit(".", 1)[-1])
        if known:
            names[alias] = known
        elif alias not in names:
            worker.problems.append(
                Problem(
                    f"config.providers.{alias}.class",
                    "This provider of secrets is not supported",
                    class_name or None,
                    "supported: " + ", ".join(_PROVIDER_CLASSES),
                    worker.file,
                )
            )
    return names


def resolve_references(document: Document, environ: Mapping[str, str], providers: Mapping[str, str]) -> None:
    """Replaces ``${env:NAME}``, ``${file:/path:key}`` and ``${directory:/path:name}`` in ``texts``."""
    for name, written in document.written.items():
        if "${" not in written:
            continue

        def replace(match: re.Match[str], name: str = name) -> str:
            provider, path, key = match.group(1).strip(), (match.group(2) or "").strip(), match.group(3).strip()
            kind = providers.get(provider)
            if kind is None:
                problem = f"There is no provider '{provider}' for {match.group()}"
                hint = "known: " + ", ".join(sorted(providers))
                document.problems.append(Problem(name, problem, None, hint, document.place(name)))
                document.broken.add(name)
                return match.group()
            found, problem = _look_up(kind, path, key, environ)
            if found is None:
                document.problems.append(Problem(name, f"{match.group()}: {problem}", None, None, document.place(name)))
                document.broken.add(name)
                return match.group()
            if name not in PUBLIC_NAMES:
                learn_resolved(name, found, match.group())
            return found

        document.texts[name] = REFERENCE.sub(replace, written)
        if name not in document.broken:
            learn(name, document.texts[name])


def _look_up(kind: str, path: str, key: str, environ: Mapping[str, str]) -> tuple[str | None, str]:
    if kind == "env":
        found = environ.get(key)
        return found, f"the environment variable {key} is not set"
    target = Path(path) / key if kind == "directory" else Path(path)
    try:
        content = file_content(target).decode()
    except (OSError, UnicodeDecodeError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or "is not UTF-8 text"
        return None, f"the file {target} cannot be read: {reason}"
    if kind == "directory":
        return content.rstrip("\r\n"), ""
    try:
        return java_properties(content).get(key), f"the file {target} has no key {key}"
    except ValueError as error:
        return None, f"the file {target} cannot be read: {error}"
