"""Making a recording: a seed or the package's statements are played on a server, and what came out is the recording.

In: a server, and what kind of recording is wanted. Out: a recording that `files.write_recording` writes.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.resources import files

from embedded.scylla.recordings.files import Answers, Histories, Recording
from embedded.scylla.recordings.random_writes import random_recording
from embedded.scylla.recordings.scripted import play_answers, play_histories
from embedded.scylla.recordings.seeded import play_seeded
from embedded.scylla.recordings.server import Server


def record(
    server: Server,
    kind: str,
    *,
    tablets: bool = False,
    seed: int = 1,
    statements: int = 1500,
    progress: Callable[[int], None] = lambda done: None,
) -> Recording:
    """Seed and number of statements count for seeded recordings; the others always have the same statements."""
    if kind == "seeded":
        return play_seeded(server, random_recording(seed, tablets, statements), progress)
    texts = script(kind)
    if kind == "answers":
        # As if each was refused: here it is the refusal to add a column too soon that is asked for.
        asked = [{"statement": text, "error": ""} for text in texts]
        return play_answers(server, Answers(asked, {}, {}, {}, tablets), progress)
    history = Histories(f"hist{'t' if tablets else 'v'}", tablets, [{"statement": text} for text in texts], {})
    return play_histories(server, history, progress)


def default_file(kind: str, tablets: bool, seed: int) -> str:
    """The name that recordings of this kind have."""
    sort = "tablets" if tablets else "vnodes"
    return {
        "seeded": f"{sort}-{seed}.jsonl.gz",
        "answers": f"answers-{sort}.json",
        "histories": f"histories-{sort}.json.gz",
    }[kind]


def script(kind: str) -> list[str]:
    """The statements of answers or histories: one a line, with `{k}` for the keyspace."""
    text = files("embedded.scylla.recordings").joinpath(f"{kind}.cql").read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line and not line.startswith("--")]
