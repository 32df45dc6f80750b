"""Writes `jars.lock` anew: resolves each set's roots with everything they need and pins the result.

For maintainers, after a root's version was changed in the lock file: `python -m spark_jobs.jvm lock`.
"""

from __future__ import annotations

import hashlib
import re
import tempfile
from pathlib import Path

from spark_jobs.jvm import ivy
from spark_jobs.jvm.cache import cache_dir
from spark_jobs.jvm.ivy import Coordinate
from spark_jobs.jvm.jars import LOCK_FILE, Jar, JarSet, jar_set, names
from spark_jobs.jvm.java import find_java

_HEADER = """\
# Every jar that is fetched, with its SHA-256. Change a root, then: python -m spark_jobs.jvm lock
"""


def pin(wanted: JarSet) -> list[Jar]:
    """The set's roots with all they need, as found in the repository now."""
    with tempfile.TemporaryDirectory(dir=cache_dir()) as folder:
        ivy.fetch(
            find_java(),
            wanted.roots,
            Path(folder),
            cache_dir() / "ivy",
            transitive=True,
            overrides=wanted.overrides,
            pattern="[organisation]/[module]/[revision]/[artifact]-[revision](-[classifier]).[ext]",
        )
        classified = {root.file_name: root for root in wanted.roots if root.classifier}
        jars = []
        for file in sorted(Path(folder).rglob("*.*")):
            if file.is_file():
                organisation, name, version = file.relative_to(folder).parts[:3]
                coordinate = classified.get(file.name, Coordinate(organisation, name, version))
                jars.append(Jar(coordinate, hashlib.sha256(file.read_bytes()).hexdigest()))
    if wanted.beside_pyspark:
        present = {_artifact(path.name) for path in ivy.pyspark_jars().glob("*.jar")}
        jars = [jar for jar in jars if _artifact(jar.coordinate.file_name) not in present]
    return sorted(jars, key=lambda jar: jar.coordinate)


def _artifact(file_name: str) -> str:
    return re.sub(r"-\d.*$", "", file_name)


def lock_text(sets: dict[str, tuple[JarSet, list[Jar]]]) -> str:
    parts = [_HEADER]
    for name, (wanted, jars) in sets.items():
        lines = [f"[{name}]", f'purpose = "{wanted.purpose}"', _list("roots", wanted.roots)]
        if wanted.overrides:
            lines.append(_list("overrides", wanted.overrides))
        if wanted.beside_pyspark:
            lines.append("beside-pyspark = true")
        lines += ["", f"[{name}.files]", *(f'"{jar.coordinate}" = "{jar.sha256}"' for jar in jars)]
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def _list(key: str, coordinates: tuple[Coordinate, ...]) -> str:
    return f"{key} = [\n" + "".join(f'    "{item}",\n' for item in coordinates) + "]"


def pin_all() -> None:
    """Writes the lock file anew: what each set's roots resolve to now."""
    LOCK_FILE.write_text(lock_text({name: (jar_set(name), pin(jar_set(name))) for name in names()}))
