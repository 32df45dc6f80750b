"""HashiCorp Vault, with the parameters of Lenses' and Confluent's providers.

In: `config.providers.<name>.param.*`, and `VAULT_ADDR` and `VAULT_TOKEN` where those are silent. Out: what the
key-value engine has at a path. Needs hvac, the extra `vault`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from connector.config.stores.store import NO_PATH, Read, SecretStore, StoreError, first
from connector.config.tls import KeystoreError, PemFile, read_certificates
from connector.secrets import register

_SECONDS: Final = 10
_KUBERNETES_TOKEN: Final = "/var/run/secrets/kubernetes.io/serviceaccount/token"
#: How to log in, by what users write: Lenses' words and Confluent's.
METHODS: Final = ("token", "approle", "userpass", "ldap", "kubernetes", "jwt")


def open_vault(alias: str, params: Mapping[str, str], environ: Mapping[str, str]) -> SecretStore:
    """The store of one provider; nothing is asked yet."""
    address = first(params, "vault.addr", "vault.address", "uri") or environ.get("VAULT_ADDR", "").strip()
    address = address or "http://localhost:8200"
    name = f"Vault {address}"
    return SecretStore(name, lambda: _connected(name, address, params, environ))


def _connected(name: str, address: str, params: Mapping[str, str], environ: Mapping[str, str]) -> Read:
    try:
        import hvac
        import requests
    except ImportError:
        raise StoreError(f"{name} needs a client that is not installed: pip install 'scylla-cdc[vault]'") from None
    version = first(params, "vault.engine.version", "vault.secrets.version") or "2"
    if version not in ("1", "2"):
        raise StoreError(f"{name}: the version of the key-value engine is 1 or 2, not {version}")
    prefix = first(params, "vault.prefixpath", "vault.prefix")
    verify, kept = _verification(name, params)
    client = hvac.Client(address, namespace=first(params, "vault.namespace") or None, verify=verify, timeout=_SECONDS)

    def asked(what: str, ask: Callable[[], Any]) -> Any:
        assert kept is None or kept.path == verify, "the certificates are there as long as somebody may need them"
        try:
            return ask()
        except hvac.exceptions.VaultError as error:
            said = "; ".join(map(str, error.errors or ())) or str(error.args[0] or type(error).__name__)
            raise StoreError(f"{name}: {what}: {said}") from None
        except requests.RequestException as error:
            raise StoreError(f"{name} cannot be reached: {_reason(error)}") from None
        except ValueError as error:
            raise StoreError(f"{name}: {what}: its answer is not Vault's: {error}") from None
        finally:
            client.adapter.close()

    asked("the login was refused", lambda: _log_in(name, client, params, environ))

    def read(path: str) -> Mapping[str, Any]:
        whole = "/".join(part.strip("/") for part in (prefix, path) if part.strip("/"))
        if not whole:
            raise StoreError(NO_PATH)
        for at in _places(whole, version):
            answer = asked(f"{path} cannot be read", partial(client.read, at))
            if not isinstance(answer, dict | None):
                raise StoreError(f"{name}: {path} cannot be read: its answer is not Vault's")
            data = None if answer is None else answer.get("data")
            if version == "2" and isinstance(data, dict):
                data = data.get("data")
            if isinstance(data, dict):
                return data
        raise StoreError(f"{name} has nothing at {path}")

    return read


def _places(path: str, version: str) -> list[str]:
    """Version 2 has its secrets below `data`, which users write, or leave out as with Java's client."""
    mount, _, rest = path.partition("/")
    if version == "1":
        return [path]
    return [f"{mount}/data/{rest}", *([path] if rest.startswith("data/") else [])]


def _log_in(name: str, client: Any, params: Mapping[str, str], environ: Mapping[str, str]) -> None:
    method = (first(params, "vault.auth.method") or "token").lower()
    mount = first(params, "vault.auth.mount")

    def needed(*names: str, default: str = "") -> str:
        found = first(params, *names) or default
        if not found:
            raise StoreError(f"{name}: vault.auth.method={method} needs {' or '.join(names)}")
        return found

    auth = client.auth
    if method == "token":
        client.token = needed("vault.token", "vault.auth.token", "token", default=environ.get("VAULT_TOKEN", ""))
        register(client.token)
    elif method == "approle":
        role, secret = needed("app.role.id", "vault.auth.role"), needed("app.role.secret.id", "vault.auth.secret")
        auth.approle.login(role, secret, mount_point=mount or first(params, "app.role.path") or "approle")
    elif method == "userpass":
        user, password = needed("username", "vault.auth.username"), needed("password", "vault.auth.password")
        auth.userpass.login(user, password, mount_point=mount or first(params, "mount") or "userpass")
    elif method == "ldap":
        user, password = needed("ldap.username", "vault.auth.username"), needed("ldap.password", "vault.auth.password")
        auth.ldap.login(user, password, mount_point=mount or first(params, "ldap.mount") or "ldap")
    elif method == "kubernetes":
        path = first(params, "kubernetes.token.path") or _KUBERNETES_TOKEN
        try:
            token = Path(path).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise StoreError(f"{name}: the service account's token {path} cannot be read: {error}") from None
        register(token)
        role = needed("kubernetes.role", "vault.auth.role")
        auth.kubernetes.login(role, token, mount_point=mount or "kubernetes")
    elif method == "jwt":
        role, token = needed("jwt.role", "vault.auth.role"), needed("jwt", "vault.auth.token")
        client.token = auth.jwt.jwt_login(role, token, path=mount or "jwt")["auth"]["client_token"]
    else:
        raise StoreError(f"{name}: vault.auth.method={method} is not supported; one of {', '.join(METHODS)}")
    if client.token:
        register(client.token)


def _verification(name: str, params: Mapping[str, str]) -> tuple[bool | str, PemFile | None]:
    """Whether, or by which certificates, the server is known; and the file that holds them, if there is one of ours."""
    if first(params, "vault.ssl.verify.enabled").lower() == "false":
        return False, None
    pem, store = first(params, "vault.pem"), first(params, "vault.ssl.truststore.location")
    if pem and not pem.startswith("-----"):
        return pem, None
    if store and not pem:
        try:
            pem = read_certificates(store, first(params, "vault.ssl.truststore.password") or None)
        except KeystoreError as error:
            raise StoreError(f"{name}: vault.ssl.truststore.location: {error}") from None
    if not pem:
        return True, None
    file = PemFile(pem)
    return file.path, file


def _reason(error: Exception) -> str:
    """The innermost reason: the outer ones are about a pool of connections."""
    inner: Any = error.args[0] if error.args else error
    return str(getattr(inner, "reason", None) or inner).partition(": ")[2] or type(error).__name__
