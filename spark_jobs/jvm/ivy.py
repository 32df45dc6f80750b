"""Runs Apache Ivy, which pyspark's wheel contains, to fetch jars from a Maven repository.

In go coordinates, out come files in a folder. Ivy's default repository is used, or the user's own Ivy settings; nothing
here names a host. Knows no pinned sets and no checksums: that is `spark_jobs.jvm.jars`.
"""

from __future__ import annotations

import os
import re
import subprocess
import urllib.parse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from xml.sax.saxutils import quoteattr

from connector.errors import EmbeddedError
from spark_jobs.jvm.cache import VARIABLE as CACHE_VARIABLE
from spark_jobs.jvm.java import ENVIRONMENT, Java
from spark_jobs.jvm.truststore import write_trust_store

SETTINGS_VARIABLE = "SCYLLA_CDC_IVY_SETTINGS"

# POMs of a half-filled local Maven repository would make Ivy look for jars that are not there: the chain has one link.
_SETTINGS = """<ivysettings>
  <settings defaultResolver="central"/>
  <caches defaultCacheDir="${cache.dir}"/>
  <resolvers>
    <ibiblio name="central" m2compatible="true" usepoms="true" useMavenMetadata="false"/>
  </resolvers>
</ivysettings>
"""
# `:: org#name;1.0: not found`, `[FAILED     ] …`, and whatever Java says went wrong.
_REASON = re.compile(r"::\s+\S+#\S+;\S+: |FAILED|[Ee]rror\b|Exception|Host \S+ not found")
# Of the disk, not of the network.
_NO_ROOM = re.compile(r"No space left on device|Read-only file system|Disk quota exceeded")
_TYPES = ("jar", "bundle", "tar.gz")


@dataclass(frozen=True, slots=True, order=True)
class Coordinate:
    """`organisation:name:version`, for other than plain jars also `:extension:classifier`."""

    organisation: str
    name: str
    version: str
    extension: str = "jar"
    classifier: str = ""

    @classmethod
    def parse(cls, text: str) -> Coordinate:
        return cls(*text.split(":"))

    def __str__(self) -> str:
        parts = [self.organisation, self.name, self.version]
        if self.classifier or self.extension != "jar":
            parts += [self.extension, self.classifier]
        return ":".join(parts)

    @property
    def file_name(self) -> str:
        classifier = f"-{self.classifier}" if self.classifier else ""
        return f"{self.name}-{self.version}{classifier}.{self.extension}"


def pyspark_jars() -> Path:
    """The folder of jars inside pyspark's wheel."""
    spec = find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations:
        raise EmbeddedError("pyspark is not installed: pip install 'scylla-cdc[embedded]'")
    return Path(next(iter(spec.submodule_search_locations))) / "jars"


def fetch(
    java: Java,
    coordinates: Sequence[Coordinate],
    target: Path,
    work: Path,
    *,
    transitive: bool = False,
    overrides: Sequence[Coordinate] = (),
    pattern: str = "[artifact]-[revision](-[classifier]).[ext]",
    progress: Callable[[str], None] = lambda name: None,
) -> None:
    """Puts the files of the coordinates into `target`. `work` holds Ivy's cache and files.

    `progress` is called with each file's name as its download begins. Raises `EmbeddedError` with Ivy's own reasons.
    """
    work.mkdir(parents=True, exist_ok=True)
    module = work / "ivy.xml"
    module.write_text(_module(coordinates, overrides, transitive=transitive))
    command = [*_options(), f"-Dcache.dir={work / 'cache'}", "-jar", str(_ivy_jar())]
    command += ["-settings", str(_settings(work)), "-cache", str(work / "cache"), "-ivy", str(module)]
    command += ["-confs", "default", "-types", *_TYPES, "-retrieve", str(target / pattern)]
    status, output = _run([str(java.executable), *command], progress)
    if status != 0 and _untrusted(output):
        # A proxy that opens TLS signs with a CA that the machine's programs know and this Java does not.
        store = write_trust_store(work / "trust.p12")
        if store is not None:
            status, output = _run([str(java.executable), *store.java_options(), *command], progress)
    if status != 0:
        raise EmbeddedError(_reasons(output, work))


def _ivy_jar() -> Path:
    jars = sorted(pyspark_jars().glob("ivy-*.jar"))
    if not jars:
        raise EmbeddedError(f"pyspark's jars in {pyspark_jars()} contain no Apache Ivy")
    return jars[-1]


def _settings(work: Path) -> Path:
    """The user's Ivy settings: by variable, or those that Spark itself is configured to use; else our own."""
    given = os.environ.get(SETTINGS_VARIABLE) or _spark_defaults().get("spark.jars.ivySettings")
    if given:
        path = Path(given.removeprefix("file://")).expanduser().absolute()
        if not path.is_file():
            raise EmbeddedError(f"the Ivy settings file {path} does not exist")
        return path
    path = work / "ivysettings.xml"
    path.write_text(_SETTINGS)
    return path


def _spark_defaults() -> dict[str, str]:
    folder = os.environ.get("SPARK_CONF_DIR") or os.path.join(os.environ.get("SPARK_HOME", ""), "conf")
    path = Path(folder) / "spark-defaults.conf"
    if not path.is_file():
        return {}
    return dict(re.findall(r"^\s*(spark\.[\w.]+)[\s=]+(\S+)", path.read_text(), re.MULTILINE))


def _module(coordinates: Sequence[Coordinate], overrides: Sequence[Coordinate], *, transitive: bool) -> str:
    lines = [
        '<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">',
        '<info organisation="scylla-cdc" module="jars" revision="1"/>',
        '<configurations><conf name="default"/></configurations>',
        "<dependencies>",
    ]
    for item in coordinates:
        named = f"org={quoteattr(item.organisation)} name={quoteattr(item.name)} rev={quoteattr(item.version)}"
        if item.classifier:
            kind = f"type={quoteattr(item.extension)} ext={quoteattr(item.extension)}"
            artifact = f"<artifact name={quoteattr(item.name)} {kind} m:classifier={quoteattr(item.classifier)}/>"
            lines.append(f'<dependency {named} transitive="false">{artifact}</dependency>')
        else:
            conf = "default->compile(*),runtime(*),master(*)" if transitive else "default->master"
            flat = "" if transitive else ' transitive="false"'
            lines.append(f'<dependency {named} conf="{conf}"{flat}/>')
    for item in overrides:
        named = f"org={quoteattr(item.organisation)} module={quoteattr(item.name)} rev={quoteattr(item.version)}"
        lines.append(f"<override {named}/>")
    lines += ["</dependencies>", "</ivy-module>"]
    return "\n".join(lines)


def _options() -> list[str]:
    """A small, quickly started JVM that uses the proxy the environment names, as Python's tools do."""
    options = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx512m"]
    for scheme in ("http", "https"):
        proxy = os.environ.get(f"{scheme}_proxy") or os.environ.get(f"{scheme.upper()}_PROXY")
        parts = urllib.parse.urlsplit(proxy if proxy and "//" in proxy else f"//{proxy or ''}")
        if parts.hostname:
            options += [f"-D{scheme}.proxyHost={parts.hostname}", f"-D{scheme}.proxyPort={parts.port or 80}"]
    direct = os.environ.get("no_proxy") or os.environ.get("NO_PROXY")
    if direct:
        hosts = [f"*{host}" if host.startswith(".") else host for host in re.split(r"[,\s]+", direct) if host]
        options.append(f"-Dhttp.nonProxyHosts={'|'.join(hosts)}")
    return options


def _run(command: list[str], progress: Callable[[str], None]) -> tuple[int, str]:
    lines: list[str] = []
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        errors="replace",
        env=os.environ | ENVIRONMENT,
    ) as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                lines.append(line.rstrip())
                started = re.match(r"\s*downloading (\S+)", line)
                if started and started[1].endswith(_TYPES):
                    progress(started[1].rsplit("/", 1)[-1])
        except BaseException:
            process.kill()
            raise
    return process.returncode, "\n".join(lines)


def _untrusted(output: str) -> bool:
    return "PKIX path" in output or "unable to find valid certification path" in output


def _reasons(output: str, work: Path) -> str:
    if (found := _NO_ROOM.search(output)) is not None:
        return f"jars could not be kept in {work.parent}: {found[0]}; {CACHE_VARIABLE} names another folder"
    told = [line.partition(" url=")[0].strip(" :\t.") for line in output.splitlines() if _REASON.search(line)]
    unique = list(dict.fromkeys(told))[:8]
    shown = "".join(f"\n  {line}" for line in unique or output.splitlines()[-8:])
    return (
        f"jars could not be fetched from the Maven repository:{shown}\n"
        f"Without direct access, name your mirror's Ivy settings file in {SETTINGS_VARIABLE}."
    )
