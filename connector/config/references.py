"""References to secrets, ``${provider:path:key}``: who answers each, and what it answers.

In: documents and the environment. Out: the documents' ``texts``, resolved; problems for what cannot be.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final

from connector.config.document import PUBLIC_NAMES, REFERENCE, Document
from connector.config.environment import NO_TEXT, is_text
from connector.config.local_provider import LIMITS, LocalProvider, limited
from connector.config.secret import learn, learn_resolved
from connector.config.stores import SecretStore, StoreError, open_secrets_manager, open_vault
from connector.errors import Problem

_ENV, _FILE, _DIRECTORY = LocalProvider("env"), LocalProvider("file"), LocalProvider("directory")
#: There without being declared.
_PROVIDERS: Final[Mapping[str, LocalProvider]] = {"env": _ENV, "file": _FILE, "directory": _DIRECTORY}
_PROVIDER_CLASSES = {
    "EnvVarConfigProvider": _ENV,
    "ENVSecretProvider": _ENV,
    "FileConfigProvider": _FILE,
    "DirectoryConfigProvider": _DIRECTORY,
}
_OpenStore = Callable[[str, Mapping[str, str], Mapping[str, str]], SecretStore]
#: Stores on servers: the simple names of Lenses', Confluent's, AWS' and others' classes.
_STORE_CLASSES: dict[str, _OpenStore] = {
    "VaultSecretProvider": open_vault,
    "VaultConfigProvider": open_vault,
    "AWSSecretProvider": open_secrets_manager,
    "SecretsManagerConfigProvider": open_secrets_manager,
}
_MOUNT = "mount it into the container: ${directory:/path:key} or ${file:/path:key}, or as a variable: ${env:NAME}"
#: Classes that users have, and what to do instead.
_INSTEAD = {
    "KubernetesSecretConfigProvider": _MOUNT,
    "KubernetesConfigMapConfigProvider": _MOUNT,
    "K8sSecretConfigProvider": _MOUNT,
}
#: A provider that is refused, and one that is not declared where others may not read everything.
_REFUSED = "refused"
_UNDECLARED = "undeclared"
Provider = str | LocalProvider | SecretStore


def provider_names(
    worker: Document, environ: Mapping[str, str] | None = None, others: Iterable[Document] = ()
) -> dict[str, Provider]:
    """Which provider each name in ``${name:…}`` means, including those the worker file names itself.

    One that cannot be had is a problem where this file or one of the ``others`` refers to it.
    """
    environ = {} if environ is None else environ
    names: dict[str, Provider] = {**_PROVIDERS}
    aliases = [alias.strip() for alias in worker.written.get("config.providers", "").split(",") if alias.strip()]
    for alias in aliases:
        class_name = worker.written.get(f"config.providers.{alias}.class", "").strip()
        simple = class_name.rsplit(".", 1)[-1]
        known, opened = _PROVIDER_CLASSES.get(simple), _STORE_CLASSES.get(simple)
        if known:
            names[alias] = _with_limits(known, alias, worker, environ)
        elif opened is not None:
            names[alias] = opened(alias, _params(alias, worker, environ), environ)
        elif alias not in names and not _refers((worker, *others), alias):
            text = "has no effect: nothing refers to it, and classes of the JVM cannot be loaded here"
            worker.notes.append((f"config.providers.{alias}.class", text))
        elif alias not in names or simple in _INSTEAD:
            supported = ", ".join((*_PROVIDER_CLASSES, *_STORE_CLASSES))
            worker.problems.append(
                Problem(
                    f"config.providers.{alias}.class",
                    "This provider of secrets is not supported",
                    class_name or None,
                    _INSTEAD.get(simple, f"supported: {supported}"),
                    worker.file,
                )
            )
            # Its references are this one problem, not one each.
            names[alias] = _REFUSED
    if any(isinstance(each, LocalProvider) and each.limited for each in names.values()):
        # Else what one may not read were read by another: a file of variables stands below /proc.
        names |= {name: _UNDECLARED for name in _PROVIDERS if name not in aliases}
    return names


def _with_limits(known: LocalProvider, alias: str, worker: Document, environ: Mapping[str, str]) -> Provider:
    prefix = f"config.providers.{alias}.param."
    params = _params(alias, worker, environ)
    provider, problems = limited(known, params, prefix)
    worker.problems += [replace(problem, file=worker.place(problem.property)) for problem in problems]
    worker.notes += [
        (prefix + name, f"has no effect: it knows {LIMITS[known.kind]}")
        for name in params
        if name != LIMITS[known.kind]
    ]
    return _REFUSED if problems else provider


def _refers(documents: Iterable[Document], alias: str) -> bool:
    return any(f"${{{alias}:" in written for each in documents for written in each.written.values())


def _params(alias: str, worker: Document, environ: Mapping[str, str]) -> dict[str, str]:
    """The parameters of a store, in which local references are resolved: its login stands in the environment."""
    prefix = f"config.providers.{alias}.param."
    params = {}
    for name, written in worker.written.items():
        if not name.startswith(prefix):
            continue

        def replace(match: re.Match[str]) -> str:
            kind, path, key = match.group(1).strip(), (match.group(2) or "").strip(), match.group(3).strip()
            local = _PROVIDERS.get(kind)
            found = None if local is None else local.look_up(path, key, environ)[0]
            # What cannot be found is reported with the file's other references.
            return match.group() if found is None else found

        params[name[len(prefix) :]] = REFERENCE.sub(replace, written)
    for name, text in params.items():
        learn(name, text)
    return params


def resolve_references(
    document: Document,
    environ: Mapping[str, str],
    providers: Mapping[str, Provider],
    idle: Callable[[str], object] = lambda name: None,
) -> None:
    """Replaces ``${env:NAME}``, ``${file:/path:key}``, ``${directory:/path:name}`` and those of stores in ``texts``.

    What is ``idle`` needs no value, and does without one that is not to be had.
    """

    def miss(name: str, problem: str, hint: str | None = None) -> None:
        document.broken.add(name)
        if not idle(name):
            document.problems.append(Problem(name, problem, None, hint, document.place(name)))

    for name, written in document.written.items():
        if "${" not in written:
            continue

        def replace(match: re.Match[str], name: str = name) -> str:
            provider, path, key = match.group(1).strip(), (match.group(2) or "").strip(), match.group(3).strip()
            kind = providers.get(provider)
            if kind is None or kind == _UNDECLARED:
                problem = f"There is no provider '{provider}' for {match.group()}"
                hint = "known: " + ", ".join(sorted(name for name, each in providers.items() if each != _UNDECLARED))
                if kind is not None:
                    problem += ": the worker limits what is read, so it counts only where it is declared"
                    hint = f"add {provider} to config.providers, with its class; {hint}"
                miss(name, problem, hint)
                return match.group()
            if isinstance(kind, str):  # refused
                document.broken.add(name)
                return match.group()
            found, problem = _look_up(kind, path, key, environ)
            if found is None:
                miss(name, f"{match.group()}: {problem}")
                return match.group()
            if name not in PUBLIC_NAMES:
                learn_resolved(name, found, match.group())
            return found

        document.texts[name] = REFERENCE.sub(replace, written)
        if name not in document.broken:
            learn(name, document.texts[name])
    _refuse_what_is_no_text(document)


def _refuse_what_is_no_text(document: Document) -> None:
    """Half of a character comes from a variable with bytes that are no UTF-8, or from the JSON of a store."""
    for name, text in document.texts.items():
        if name not in document.broken and not (is_text(name) and is_text(text)):
            written = document.written.get(name, "")
            shown = written if REFERENCE.search(written) else None
            document.problems.append(Problem(name, NO_TEXT, shown, None, document.place(name)))
            document.broken.add(name)


def _look_up(
    provider: LocalProvider | SecretStore, path: str, key: str, environ: Mapping[str, str]
) -> tuple[str | None, str]:
    if isinstance(provider, LocalProvider):
        return provider.look_up(path, key, environ)
    try:
        return provider.look_up(path, key), ""
    except StoreError as error:
        return None, str(error)
