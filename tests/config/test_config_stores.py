"""Secrets from Vault and AWS Secrets Manager, asked for by their own clients over HTTP."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from connector.secrets import scrub
from tests.config.files import loaded, problem, problems
from tests.config.secret_servers import SecretsManager, Vault, served

LENSES = "io.lenses.connect.secrets.providers."
CONFLUENT = "io.confluent.csid.config.provider."
CASSANDRA = {"scylla.user": "cdc", "scylla.password": "${vault:secret/shop/scylla:password}"}
KV2 = {"secret/data/shop/scylla": {"data": {"password": "p4ssword-of-scylla", "port": 9042}, "metadata": {}}}
AWS = {"param.aws.region": "eu-west-1", "param.aws.access.key": "AKIA", "param.aws.secret.key": "s3cret-of-aws"}


@pytest.fixture(autouse=True)
def directly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both clients look into the environment."""
    for name in list(os.environ):
        if name.startswith(("AWS_", "VAULT_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")


def provider(alias: str, class_name: str, **params: str) -> dict[str, str]:
    prefix = f"config.providers.{alias}."
    own = {f"{prefix}{name}": text for name, text in params.items()}
    return {"config.providers": alias, f"{prefix}class": class_name, **own}


def password(worker: dict[str, str], connector: dict[str, str] = CASSANDRA, **environ: str) -> str:
    found = loaded(connector, worker, environ).connector.connection.password
    assert found is not None
    return found.reveal()


def test_a_secret_of_vault_is_read_with_a_token_and_known_to_the_filter() -> None:
    vault = Vault(KV2, ("t0ken-of-env",))
    with served(vault) as url:
        lenses = provider(
            "vault",
            f"{LENSES}VaultSecretProvider",
            **{"param.vault.addr": url, "param.vault.token": "${env:TOKEN}", "param.vault.namespace": "team"},
        )
        connector = {**CASSANDRA, "producer.override.client.id": "c-${vault:secret/shop/scylla:port}"}
        assert password(lenses, connector, TOKEN="t0ken-of-env") == "p4ssword-of-scylla"
        assert [(one.method, one.path) for one in vault.asked] == [("GET", "/v1/secret/data/shop/scylla")]
        assert vault.asked[0].headers["X-Vault-Namespace"] == "team"
        # Users of other clients write the engine's own `data`.
        literal = CASSANDRA | {"scylla.password": "${vault:secret/data/shop/scylla:password}"}
        assert password(lenses, literal, TOKEN="t0ken-of-env") == "p4ssword-of-scylla"
        bare = provider("vault", f"{CONFLUENT}vault.VaultConfigProvider")
        assert password(bare, VAULT_ADDR=url, VAULT_TOKEN="t0ken-of-env") == "p4ssword-of-scylla"
    assert "p4ssword-of-scylla" not in scrub("it is p4ssword-of-scylla")
    assert "t0ken-of-env" not in scrub("it is t0ken-of-env")


def test_the_first_version_of_the_engine_and_a_prefix() -> None:
    vault = Vault({"kv/prod/scylla": {"password": "p4ssword-of-v1"}})
    vault.logins["auth/approle/login"] = {"role_id": "r", "secret_id": "s3cret-of-role"}
    with served(vault) as url:
        worker = provider(
            "vault",
            f"{CONFLUENT}vault.VaultConfigProvider",
            **{
                "param.vault.address": url,
                "param.vault.auth.method": "AppRole",
                "param.vault.auth.role": "r",
                "param.vault.auth.secret": "s3cret-of-role",
                "param.vault.secrets.version": "1",
                "param.vault.prefixpath": "kv/prod/",
            },
        )
        assert password(worker, CASSANDRA | {"scylla.password": "${vault:scylla:password}"}) == "p4ssword-of-v1"
    assert "t0ken-of-login" not in scrub("it is t0ken-of-login")


@pytest.mark.parametrize(
    ("params", "path", "body"),
    [
        (
            {
                "vault.auth.method": "approle",
                "app.role.id": "r",
                "app.role.secret.id": "s3c",
                "app.role.path": "mine",
            },
            "auth/mine/login",
            {"role_id": "r", "secret_id": "s3c"},
        ),
        (
            {"vault.auth.method": "userpass", "username": "u", "password": "p4ssword"},
            "auth/userpass/login/u",
            {"password": "p4ssword"},
        ),
        (
            {"vault.auth.method": "LDAP", "vault.auth.username": "u", "vault.auth.password": "p4ssword"},
            "auth/ldap/login/u",
            {"password": "p4ssword"},
        ),
        (
            {"vault.auth.method": "kubernetes", "kubernetes.role": "cdc", "kubernetes.token.path": "TOKEN"},
            "auth/kubernetes/login",
            {"role": "cdc", "jwt": "jwt-of-pod"},
        ),
        (
            {"vault.auth.method": "jwt", "jwt.role": "cdc", "jwt": "jwt-of-me"},
            "auth/jwt/login",
            {"role": "cdc", "jwt": "jwt-of-me"},
        ),
    ],
)
def test_logins_of_vault(params: dict[str, str], path: str, body: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "token").write_text("jwt-of-pod\n")
    vault = Vault(KV2)
    vault.logins[path] = body
    given = {f"param.{name}": text.replace("TOKEN", str(tmp_path / "token")) for name, text in params.items()}
    with served(vault) as url:
        worker = provider("vault", f"{LENSES}VaultSecretProvider", **{"param.vault.addr": url}, **given)
        assert password(worker) == "p4ssword-of-scylla"
    assert [one.path for one in vault.asked] == [f"/v1/{path}", "/v1/secret/data/shop/scylla"]


def test_what_vault_refuses_is_said_once_for_each_reference() -> None:
    vault = Vault(KV2, ("good",))
    with served(vault) as url:

        def said(reference: str, **params: str) -> str:
            given = {"param.vault.addr": url, "param.vault.token": "good"} | params
            worker = provider("vault", "VaultSecretProvider", **given)
            return problem({"scylla.user": "u", "scylla.password": reference}, worker).problem

        assert f"Vault {url} has nothing at secret/none" in said("${vault:secret/none:a}")
        assert "no key b at secret/shop/scylla (there are: password, port)" in said("${vault:secret/shop/scylla:b}")
        assert "permission denied" in said("${vault:secret/shop/scylla:a}", **{"param.vault.token": "b4d-token"})
        assert "needs app.role.id" in said("${vault:a:b}", **{"param.vault.auth.method": "approle"})
        assert "gcp is not supported; one of token" in said("${vault:a:b}", **{"param.vault.auth.method": "gcp"})
        assert "is 1 or 2" in said("${vault:a:b}", **{"param.vault.engine.version": "3"})
        assert said("${vault:secret/shop}").endswith("it names no path, or no key: ${provider:path:key}")
        vault.secrets |= {"secret/data/busy": 429, "secret/data/proxy": "<html>"}
        assert said("${vault:secret/busy:a}").endswith("secret/busy cannot be read: RateLimitExceeded")
        assert said("${vault:secret/proxy:a}").endswith("secret/proxy cannot be read: its answer is not Vault's")
        away = said("${vault:a:b}", **{"param.vault.addr": "http://127.0.0.1:1"})
        assert away.startswith("${vault:a:b}: Vault http://127.0.0.1:1 cannot be reached: ")
        vault.asked.clear()
        both = {"scylla.user": "${vault:secret/none:a}", "scylla.password": "${vault:secret/none:b}"}
        worker = provider("vault", "VaultSecretProvider", **{"param.vault.addr": url, "param.vault.token": "good"})
        assert len(problems(both, worker)) == 2
        assert len(vault.asked) == 1
        beside = {"scylla.user": "${vault:secret/shop}", "scylla.password": "${vault:secret/shop/scylla:b}"}
        assert "no key b at secret/shop/scylla" in problems(beside, worker)[1].problem, "one says nothing of another"


def test_a_secret_of_aws_is_read_with_keys_a_region_and_an_endpoint() -> None:
    aws = SecretsManager(
        {
            "prod/scylla": {"SecretString": '{"password": "p4ssword-of-aws", "port": 9042}'},
            "plain": {"SecretString": "pl4in-text"},
            "arn:aws:secretsmanager:eu-west-1:1:secret:s": {"SecretBinary": "cDRzcy1vZi1ieXRlcw=="},
        }
    )
    with served(aws) as url:

        def read(reference: str, class_name: str, **params: str) -> str:
            worker = provider("aws", class_name, **AWS, **params)
            return password(worker, {"scylla.user": "u", "scylla.password": reference})

        lenses, confluent = f"{LENSES}AWSSecretProvider", f"{CONFLUENT}aws.SecretsManagerConfigProvider"
        endpoint = {"param.aws.endpoint.override": url}
        assert read("${aws:prod/scylla:password}", lenses, **endpoint) == "p4ssword-of-aws"
        prefixed = {"param.endpoint.override": url, "param.secret.prefix": "prod/"}
        assert read("${aws:scylla:password}", confluent, **prefixed) == "p4ssword-of-aws"
        assert read("${aws:plain:value}", lenses, **endpoint) == "pl4in-text"
        assert read("${aws:arn:aws:secretsmanager:eu-west-1:1:secret:s:value}", lenses, **endpoint) == "p4ss-of-bytes"
    assert "Credential=AKIA/" in aws.asked[0].headers["Authorization"]
    assert "/eu-west-1/secretsmanager/" in aws.asked[0].headers["Authorization"]
    assert "p4ssword-of-aws" not in scrub("it is p4ssword-of-aws")


def test_what_aws_refuses_is_said() -> None:
    aws = SecretsManager({})
    with served(aws) as url:
        own = "com.amazonaws.kafka.config.providers.SecretsManagerConfigProvider"
        given = {"scylla.user": "u", "scylla.password": "${aws:none:a}"}
        worker = provider("aws", own, **AWS, **{"param.endpoint": url})
        assert "ResourceNotFoundException: can't find the specified secret." in problem(given, worker).problem
        whole = {"scylla.user": "u", "scylla.password": "${aws:prod/scylla}"}
        assert "it names no path, or no key" in problem(whole, worker).problem
        del worker["config.providers.aws.param.aws.secret.key"]
        assert "only of use together" in problem(given, worker).problem


@pytest.mark.parametrize(
    ("package", "class_name", "extra"),
    [("hvac", "VaultConfigProvider", "scylla-cdc[vault]"), ("boto3", "AWSSecretProvider", "scylla-cdc[aws]")],
)
def test_a_client_that_is_not_installed_is_named_where_it_is_needed(
    package: str, class_name: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    worker = provider("store", class_name)
    found = problem({"scylla.user": "u", "scylla.password": "${store:a:b}"}, worker)
    assert found.property == "scylla.password" and extra in found.problem
    # Who looks nothing up needs no client.
    assert problems({}, worker) == []


def test_providers_of_kubernetes_are_refused_with_what_to_do() -> None:
    worker = provider("secrets", "io.strimzi.kafka.KubernetesSecretConfigProvider")
    found = problem({"scylla.user": "u", "scylla.password": "${secrets:ns/scylla:password}"}, worker)
    assert found.property == "config.providers.secrets.class"
    assert "${directory:/path:key}" in str(found.suggestion)


def test_what_a_provider_is_called_makes_no_secret_of_its_parameters() -> None:
    worker = provider("secretsManager", "AWSSecretProvider", **AWS)
    loaded({}, worker | {"config.providers.secretsManager.param.aws.region": "eu-central-1"})
    assert scrub("in eu-central-1") == "in eu-central-1"
    assert scrub("the key s3cret-of-aws") != "the key s3cret-of-aws"


KAFKA = "org.apache.kafka.common.config.provider."


def test_a_provider_reads_no_more_than_the_worker_allows(tmp_path: Path) -> None:
    """Who defines connectors over HTTP would read every file and variable of the service."""
    allowed, other = tmp_path / "allowed", tmp_path / "other"
    for folder in (allowed, other):
        folder.mkdir()
        (folder / "own.properties").write_text(f"key={folder.name}")
    (allowed / "plain").write_text("plain\n")
    (allowed / "up").symlink_to(other)
    files = provider("file", f"{KAFKA}FileConfigProvider", **{"param.allowed.paths": f"/nowhere, {allowed}/"})
    folders = provider("dir", f"{KAFKA}DirectoryConfigProvider", **{"param.allowed.paths": str(allowed)})
    names = provider("env", f"{KAFKA}EnvVarConfigProvider", **{"param.allowlist.pattern": "DB_.*|MORE"})
    worker = {**files, **folders, **names, "config.providers": "file,dir,env"}
    environ = {"DB_NAME": "shop", "MORE": "more", "MORE_OF_IT": "s3cret"}

    def prefix(reference: str) -> str:
        return loaded({"topic.prefix": reference}, worker, environ).connector.output.names.topic_prefix

    assert prefix(f"${{file:{allowed}/own.properties:key}}") == "allowed"
    assert prefix(f"${{file:{allowed}/up/../own.properties:key}}") == "allowed"
    assert prefix("${env:DB_NAME}-${env:MORE}") == "shop-more"
    assert prefix(f"${{dir:{allowed}:plain}}") == "plain"
    for reference in (
        f"${{file:{other}/own.properties:key}}",
        f"${{file:{allowed}/../other/own.properties:key}}",
        f"${{file:{tmp_path}/allowed-too/own.properties:key}}",
        "${file:own.properties:key}",
        f"${{dir:{other}:own.properties}}",
        f"${{dir:{allowed}:../other/own.properties}}",
        "${env:MORE_OF_IT}",
    ):
        found = problem({"topic.prefix": reference}, worker, environ)
        assert found.property == "topic.prefix" and "may not be read" in found.problem, found


def test_beside_a_provider_with_limits_others_are_to_be_declared(tmp_path: Path) -> None:
    worker = provider("vars", f"{KAFKA}EnvVarConfigProvider", **{"param.allowlist.pattern": "DB_.*"})
    for reference in ("${env:HOME}", "${file:/proc/self/environ:HOME}", "${directory:/proc/self:environ}"):
        found = problem({"topic.prefix": reference}, worker, {"HOME": "s3cret"})
        assert "There is no provider" in found.problem and "config.providers" in str(found.suggestion), found
    (tmp_path / "own.properties").write_text("key=shop")
    worker |= provider("file", f"{KAFKA}FileConfigProvider") | {"config.providers": "vars,file"}
    reference = f"${{file:{tmp_path}/own.properties:key}}"
    assert loaded({"topic.prefix": reference}, worker).connector.output.names.topic_prefix == "shop"


def test_limits_that_cannot_be_read_are_refused() -> None:
    for class_name, name, text in (
        ("FileConfigProvider", "allowed.paths", "secrets"),
        ("DirectoryConfigProvider", "allowed.paths", "/opt/secrets,,/run/secrets"),
        ("EnvVarConfigProvider", "allowlist.pattern", "DB_("),
    ):
        worker = provider("mine", f"{KAFKA}{class_name}", **{f"param.{name}": text})
        assert problem({"topic.prefix": "${mine:/a:b}"}, worker).property == f"config.providers.mine.param.{name}"
    misspelt = provider("mine", f"{KAFKA}FileConfigProvider", **{"param.allowed.path": "/opt"})
    assert any("allowed.path: has no effect" in notice for notice in loaded({}, misspelt).notices)
