"""AWS Secrets Manager, with the parameters of Lenses', Confluent's and AWS' own providers.

In: `config.providers.<name>.param.*`; what they leave out, boto3 finds where AWS' tools look for it. Out: the members
of a secret that is a JSON object, else its text as `value`. Needs boto3, the extra `aws`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from connector.config.stores.store import NO_PATH, Read, SecretStore, StoreError, first


def open_secrets_manager(alias: str, params: Mapping[str, str], environ: Mapping[str, str]) -> SecretStore:
    """The store of one provider; nothing is asked yet."""
    region = first(params, "aws.region", "region")
    name = f"AWS Secrets Manager{f' in {region}' if region else ''}"
    return SecretStore(name, lambda: _connected(name, region, params))


def _connected(name: str, region: str, params: Mapping[str, str]) -> Read:
    try:
        import boto3
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError, ClientError
    except ImportError:
        raise StoreError(f"{name} needs a client that is not installed: pip install 'scylla-cdc[aws]'") from None
    key, secret = first(params, "aws.access.key"), first(params, "aws.secret.key")
    if bool(key) != bool(secret):
        raise StoreError(f"{name}: aws.access.key and aws.secret.key are only of use together")
    if first(params, "aws.auth.method").lower() == "default":
        key = secret = ""
    try:
        client = boto3.session.Session().client(
            "secretsmanager",
            region_name=region or None,
            aws_access_key_id=key or None,
            aws_secret_access_key=secret or None,
            endpoint_url=first(params, "aws.endpoint.override", "endpoint.override", "endpoint") or None,
            config=Config(connect_timeout=5, read_timeout=10, retries={"total_max_attempts": 2}),
        )
    except (BotoCoreError, ValueError) as error:
        raise StoreError(f"{name}: {error}") from None
    prefix, as_json = first(params, "secret.prefix"), first(params, "use.json").lower() != "false"

    def read(path: str) -> Mapping[str, Any]:
        if not prefix + path:
            raise StoreError(NO_PATH)
        try:
            answer = client.get_secret_value(SecretId=prefix + path)
        except ClientError as error:
            said = error.response.get("Error", {})
            text = f"{said.get('Code', 'refused')}: {said.get('Message', '')}".rstrip(": ")
            raise StoreError(f"{name}: {path} cannot be read: {text}") from None
        except BotoCoreError as error:
            raise StoreError(f"{name} cannot be asked: {error}") from None
        finally:
            client.close()
        return _values(name, path, answer, as_json)

    return read


def _values(name: str, path: str, answer: Mapping[str, Any], as_json: bool) -> Mapping[str, Any]:
    text = answer.get("SecretString")
    if text is None:
        try:
            text = bytes(answer.get("SecretBinary", b"")).decode()
        except UnicodeDecodeError:
            raise StoreError(f"{name}: {path} is no text") from None
    if as_json:
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            found = None
        if isinstance(found, dict):
            return found
    return {"value": text}
