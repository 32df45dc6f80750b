"""References to secrets, ``${provider:path:key}``: who answers each, and what it answers.

In: documents and the environment. Out: the documents' ``texts``, resolved; problems for what cannot be.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from connector.config.contents import file_content, why_unreadable
from connector.config.document import PUBLIC_NAMES, REFERENCE, Document
from connector.config.environment import NO_TEXT, is_text
from connector.config.java_properties import java_properties
from connector.config.secret import learn, learn_resolved
from connector.config.stores import SecretStore, StoreError, open_secrets_manager, open_vault
from connector.errors import Problem

_PROVIDERS = ("env", "file", "directory")
_PROVIDER_CLASSES = {
    "EnvVarConfigProvider": "env",
    "ENVSecretProvider": "env",
    "FileConfigProvider": "file",
    "DirectoryConfigProvider": "directory",
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
#: A provider that is refused.
_REFUSED = "refused"
Provider = str | SecretStore


def provider_names(
    worker: Document, environ: Mapping[str, str] | None = None, others: Iterable[Document] = ()
) -> dict[str, Provider]:
    """Which provider each name in ``${name:…}`` means, including those the worker file names itself.

    One that cannot be had is a problem where this file or one of the ``others`` refers to it.
    """
    environ = {} if environ is None else environ
    names: dict[str, Provider] = {provider: provider for provider in _PROVIDERS}
    for alias in worker.written.get("config.providers", "").split(","):
        alias = alias.strip()
        if not alias:
            continue
        class_name = worker.written.get(f"config.providers.{alias}.class", "").strip()
        simple = class_name.rsplit(".", 1)[-1]
        known, opened = _PROVIDER_CLASSES.get(simple), _STORE_CLASSES.get(simple)
        if known:
            names[alias] = known
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
    return names


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
            found = _look_up(kind, path, key, environ)[0] if kind in _PROVIDERS else None
            # What cannot be found is reported with the file's other references.
            return match.group() if found is None else found

        params[name[len(prefix) :]] = REFERENCE.sub(replace, written)
    for name, text in params.items():
        learn(name, text)
    return params


def resolve_references(document: Document, environ: Mapping[str, str], providers: Mapping[str, Provider]) -> None:
    """Replaces ``${env:NAME}``, ``${file:/path:key}``, ``${directory:/path:name}`` and those of stores in ``texts``."""
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
            if kind == _REFUSED:
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
    _refuse_what_is_no_text(document)


def _refuse_what_is_no_text(document: Document) -> None:
    """Half of a character comes from a variable with bytes that are no UTF-8, or from the JSON of a store."""
    for name, text in document.texts.items():
        if name not in document.broken and not (is_text(name) and is_text(text)):
            written = document.written.get(name, "")
            shown = written if REFERENCE.search(written) else None
            document.problems.append(Problem(name, NO_TEXT, shown, None, document.place(name)))
            document.broken.add(name)


def _look_up(kind: Provider, path: str, key: str, environ: Mapping[str, str]) -> tuple[str | None, str]:
    if isinstance(kind, SecretStore):
        try:
            return kind.look_up(path, key), ""
        except StoreError as error:
            return None, str(error)
    if kind == "env":
        found = environ.get(key)
        return found, f"the environment variable {key} is not set"
    target = Path(path) / key if kind == "directory" else Path(path)
    try:
        content = file_content(target).decode()
    except (OSError, UnicodeDecodeError) as error:
        reason = why_unreadable(error) if isinstance(error, OSError) else "is not UTF-8 text"
        return None, f"the file {target} cannot be read: {reason}"
    if kind == "directory":
        return content.rstrip("\r\n"), ""
    try:
        return java_properties(content).get(key), f"the file {target} has no key {key}"
    except ValueError as error:
        return None, f"the file {target} cannot be read: {error}"
