"""Fetching jars, from a Maven repository in a folder or behind a private CA: whole, checked, and only once."""

from __future__ import annotations

import datetime
import functools
import hashlib
import http.server
import ipaddress
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from connector.errors import EmbeddedError
from spark_jobs.jvm import ivy, jars
from spark_jobs.jvm.ivy import Coordinate
from spark_jobs.jvm.jars import Jar, JarSet

ONE = Coordinate("org.example", "one", "1.0")
TWO = Coordinate("org.example.deep", "two", "2.1", "tar.gz", "all")


class Repository:
    """A Maven repository in a folder, and a set of jars pinned to what it holds."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for coordinate in (ONE, TWO):
            self.publish(coordinate, f"content of {coordinate}".encode())
        self.set = JarSet("example", "the test", (ONE, TWO), (), False, tuple(self.pin(each) for each in (ONE, TWO)))

    def place(self, coordinate: Coordinate) -> Path:
        return self.root.joinpath(*coordinate.organisation.split("."), coordinate.name, coordinate.version)

    def publish(self, coordinate: Coordinate, content: bytes) -> None:
        folder = self.place(coordinate)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / coordinate.file_name).write_bytes(content)
        (folder / f"{coordinate.name}-{coordinate.version}.pom").write_text(
            "<project><modelVersion>4.0.0</modelVersion>"
            f"<groupId>{coordinate.organisation}</groupId><artifactId>{coordinate.name}</artifactId>"
            f"<version>{coordinate.version}</version></project>"
        )

    def pin(self, coordinate: Coordinate) -> Jar:
        content = (self.place(coordinate) / coordinate.file_name).read_bytes()
        return Jar(coordinate, hashlib.sha256(content).hexdigest())

    def serve_from(self, url: str, settings: Path) -> None:
        settings.write_text(
            '<ivysettings><settings defaultResolver="it"/><resolvers>'
            f'<ibiblio name="it" m2compatible="true" useMavenMetadata="false" root="{url}"/>'
            "</resolvers></ivysettings>"
        )


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    monkeypatch.setenv("SCYLLA_CDC_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv(ivy.SETTINGS_VARIABLE, str(tmp_path / "settings.xml"))
    made = Repository(tmp_path / "repository")
    made.serve_from(made.root.as_uri(), tmp_path / "settings.xml")
    return made


def contents(paths: list[Path]) -> list[bytes]:
    return [path.read_bytes() for path in paths]


def test_a_set_is_fetched_once(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = [f"content of {each}".encode() for each in (ONE, TWO)]
    assert contents(jars.complete(repository.set)) == expected
    assert "2 jars for the test" in capsys.readouterr().err
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setenv(ivy.SETTINGS_VARIABLE, "/nonexistent")
    assert contents(jars.complete(repository.set)) == expected
    assert capsys.readouterr().err == ""


def test_only_what_is_damaged_is_fetched_again(repository: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    paths = jars.complete(repository.set)
    paths[0].write_bytes(paths[0].read_bytes()[:5])
    (paths[0].parent.parent / "example-killed").mkdir()
    untouched = paths[1].stat().st_mtime_ns
    capsys.readouterr()
    assert contents(jars.complete(repository.set))[0] == f"content of {ONE}".encode()
    assert paths[1].stat().st_mtime_ns == untouched
    assert "1 jar for the test" in capsys.readouterr().err
    assert not (paths[0].parent.parent / "example-killed").exists()


def test_other_files_than_pinned_are_refused_and_not_kept(repository: Repository, tmp_path: Path) -> None:
    repository.publish(ONE, b"something else")
    with pytest.raises(EmbeddedError, match=r"SHA-256 differs\): one-1\.0\.jar"):
        jars.complete(repository.set)
    assert not (tmp_path / "cache" / "jars" / "example" / ONE.file_name).exists()
    repository.publish(ONE, f"content of {ONE}".encode())
    assert contents(jars.complete(repository.set))[0] == f"content of {ONE}".encode()


def test_a_download_that_broke_off_is_not_trusted(repository: Repository) -> None:
    """What Ivy's own cache kept of an earlier, broken run."""
    jars.complete(repository.set)
    for path in jars.complete(repository.set):
        path.unlink()
    repository.publish(TWO, b"")
    with pytest.raises(EmbeddedError):
        jars.complete(repository.set)
    repository.publish(TWO, f"content of {TWO}".encode())
    assert contents(jars.complete(repository.set))[1] == f"content of {TWO}".encode()


def test_a_missing_jar_is_told_with_ivys_reason(repository: Repository) -> None:
    (repository.place(ONE) / ONE.file_name).unlink()
    (repository.place(ONE) / "one-1.0.pom").unlink()
    with pytest.raises(EmbeddedError, match=r"(?s)org\.example#one;1\.0.*" + ivy.SETTINGS_VARIABLE):
        jars.complete(repository.set)


def test_a_cache_that_cannot_be_written_is_told_with_what_moves_it(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SCYLLA_CDC_CACHE", str(tmp_path / "file" / "cache"))
    expected = r"the jars for the test cannot be kept in \S*/file/cache: Not a directory: .*; SCYLLA_CDC_CACHE names"
    with pytest.raises(EmbeddedError, match=expected):
        jars.complete(repository.set)


def test_a_full_disk_is_no_trouble_with_the_repository(tmp_path: Path) -> None:
    told = 'Exception in thread "main" java.io.IOException: No space left on device\n\tat java.base/sun.nio.ch'
    assert ivy._reasons(told, tmp_path / "ivy") == (
        f"jars could not be kept in {tmp_path}: No space left on device; SCYLLA_CDC_CACHE names another folder"
    )


def test_missing_settings_are_named(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ivy.SETTINGS_VARIABLE, "/nonexistent/ivy.xml")
    with pytest.raises(EmbeddedError, match=r"/nonexistent/ivy\.xml"):
        jars.complete(repository.set)


def test_spark_settings_serve_too(repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ivy.SETTINGS_VARIABLE)
    (tmp_path / "spark-defaults.conf").write_text(f"spark.jars.ivySettings  {tmp_path / 'settings.xml'}\n")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert len(jars.complete(repository.set)) == 2


@pytest.fixture
def https_repository(repository: Repository, tmp_path: Path) -> Iterator[Path]:
    """The repository behind TLS that only this CA vouches for; the CA's file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "a company's proxy")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    ca = tmp_path / "ca.pem"
    ca.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (tmp_path / "server.pem").write_bytes(private + ca.read_bytes())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.pem")
    handler = functools.partial(Quiet, directory=str(repository.root))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        repository.serve_from(f"https://127.0.0.1:{server.server_port}", tmp_path / "settings.xml")
        yield ca
        server.shutdown()
        thread.join()


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


def test_a_private_ca_of_the_environment_is_trusted(
    repository: Repository, https_repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "PIP_CERT", "CURL_CA_BUNDLE"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(EmbeddedError, match="PKIX"):
        jars.complete(repository.set)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(https_repository))
    assert len(jars.complete(repository.set)) == 2


def test_the_lock_file_pins_what_the_roots_need() -> None:
    assert jars.names() == ["broker", "spark", "iceberg", "registry"]
    for name in jars.names():
        pinned = jars.jar_set(name)
        assert {root.name for root in pinned.roots} <= {jar.coordinate.name for jar in pinned.jars}
        assert all(len(jar.sha256) == 64 for jar in pinned.jars)


def test_sparks_set_adds_nothing_pyspark_has() -> None:
    present = {path.name.rsplit("-", 1)[0] for path in ivy.pyspark_jars().glob("*.jar")}
    assert not present & {jar.coordinate.name for jar in jars.jar_set("spark").jars}


def test_an_unknown_set_is_answered_with_the_known() -> None:
    with pytest.raises(EmbeddedError, match="broker, spark, iceberg, registry"):
        jars.resolve("sparks")
