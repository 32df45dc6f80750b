"""The kernel makes what the plain way makes, byte for byte, or refuses; and a difference is noticed."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest

from connector.native import Difference, Kernel, compare, load_native
from connector.native.build import FOLDER, build, compiler
from connector.native.samples import Samples
from tests.formats.options import output_options
from tests.formats.test_formats_columnwise import advanced
from tests.native.random_options import random_options
from tests.native.variants import ALL, DELTA, FEWER, HEADERS, PLAIN, unwrapped


@pytest.mark.parametrize("variant", ALL)
def test_random_logs_become_the_same_records(kernel: Kernel, variant: str) -> None:
    counted = compare(kernel, output_options(**ALL[variant]), range(15))
    if variant in PLAIN:
        # Tombstones that go elsewhere are the plain way's, and what a transform puts into headers.
        assert not counted["records"] and not counted["rows of snapshots"]
    else:
        records, rows = (150, 100) if variant in FEWER else (250, 200)
        assert counted["records"] > records and counted["rows of snapshots"] > rows


def test_options_as_users_combine_them(kernel: Kernel) -> None:
    counted = Counter[str]()
    for seed in range(80):
        properties, options = random_options(seed)
        try:
            counted += compare(kernel, options, [seed], batches=12)
        except Difference as error:
            pytest.fail(f"{properties}: {error}")
    assert counted["records"] > 500 and counted["tables"] < 50


def test_hardly_anything_of_ordinary_logs_is_refused(kernel: Kernel) -> None:
    ordinary = [seed for seed in range(60) if not Samples(seed)._odd]
    # Lists out of order and deletes of partitions of clustered tables are all that is left.
    counted = compare(kernel, output_options(**{"cdc.include.collections": "delta"}), ordinary)
    assert counted["refused"] < counted["records"] / 5
    assert counted["refused rows of snapshots"] < counted["rows of snapshots"] / 50


SAFELY = unwrapped("extract-new-state")
BREAKS = [
    ('"overwrite", 9', '"overwrita", 9', {"cdc.include.collections": "delta"}),
    ("c->now / 1000000", "c->now / 1000001", {}),
    ("ticks / 10 - (ticks % 10 < 0)", "ticks / 10", {}),
    ("case 127: *code = 9", "case 127: *code = 8", {"cdc.include.metadata": "true"}),
    ("if (!member[8] && !is_touched", "if (!is_touched", SAFELY),
    ("return places[2] >= 0 && row[places[2]].size >= 0", "return 0", SAFELY | DELTA),
    ("if (code != 1 && code != 0 && code != 9) return 0", "", {}),
    ("if (each >= statics) return 0", "(void)statics", {}),
    (
        *("TRY(look_at_unseen(o, p, c));", "(void)look_at_unseen;"),
        ALL["unwrapped safely, with deltas and images"],
    ),
    ("c->spare[keys[each]] = c->row[keys[each]]", "(void)keys", SAFELY | advanced("full", "full", "payload-after")),
    ("put_headers(o, p->words, p->text", "put_headers(o, p->words, p->text + 1", HEADERS),
    ("p->tombstone_headers != p->headers", "0", ALL["unwrapped, with headers, deletes as null"]),
    ("if (matched) k->met[key] = 1", "if (matched) k->met[key] = 0", {"experimental.preimages.enabled": "true"}),
]


@pytest.mark.parametrize(("right", "wrong", "properties"), BREAKS, ids=[wrong for _, wrong, _ in BREAKS])
def test_a_kernel_that_is_wrong_is_found_out(
    tmp_path: Path, right: str, wrong: str, properties: dict[str, str]
) -> None:
    with pytest.raises(Difference):
        compare(_broken(tmp_path, right, wrong), output_options(**properties), range(60))


def _broken(folder: Path, right: str, wrong: str) -> Kernel:
    shutil.copytree(FOLDER, folder / "kernel", ignore=shutil.ignore_patterns("*.so"))
    (source,) = [path for path in (folder / "kernel").glob("*.[ch]") if right in path.read_text()]
    source.write_text(source.read_text().replace(right, wrong))
    command = compiler()
    assert command is not None
    build(command, folder / "kernel" / "broken.so", options=["-O0"], folder=folder / "kernel")
    return Kernel(folder / "kernel" / "broken.so", folder / "kernel")


def test_a_difference_switches_it_off_and_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def differs(*_: object) -> None:
        raise Difference("b'1' instead of b'2'")

    monkeypatch.setattr("connector.native.loading.compare", differs)
    native = load_native(True, output_options())
    assert native.kernel is None and native.client is None
    assert native.why_not == "its records differ from the plain way's: see the log"
    assert "b'1' instead of b'2'" in caplog.text


def test_a_self_test_that_fails_otherwise_switches_it_off(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("surprise")

    monkeypatch.setattr("connector.native.loading.compare", fails)
    assert load_native(True, output_options()).why_not == "its self-test failed: RuntimeError: surprise"


def test_it_is_on_unless_switched_off() -> None:
    native = load_native(True, output_options())
    assert native.kernel is not None and native.client is not None and native.why_not is None
    assert load_native(False, output_options()).why_not == "native=off"


def test_without_the_library_everything_is_the_plain_ways(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def missing() -> Kernel:
        return Kernel(tmp_path / "none.so")

    monkeypatch.setattr("connector.native.loading.Kernel", missing)
    native = load_native(True, output_options())
    assert native.kernel is None
    assert native.why_not is not None and "was not built" in native.why_not


def test_a_library_of_other_sources_is_not_used(tmp_path: Path) -> None:
    shutil.copytree(FOLDER, tmp_path / "kernel")
    (tmp_path / "kernel" / "kernel.c").write_text("/* newer */\n")
    with pytest.raises(Exception, match="built from other sources"):
        Kernel(tmp_path / "kernel" / "libscyllacdc.so", tmp_path / "kernel")


def test_what_is_no_library_is_told(tmp_path: Path) -> None:
    (tmp_path / "no.so").write_bytes(b"not ELF")
    with pytest.raises(Exception, match="does not load"):
        Kernel(tmp_path / "no.so")
