"""The part of the lock file that a resolution needs, hashes and all.

In: pip's report of a resolution, the lock file. Out: its lines for what is reported, on stdout; 1 if one is missing.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def main(report: str, lock: str) -> int:
    resolved = json.loads(Path(report).read_text())["install"]
    wanted = {normal(each["metadata"]["name"]) for each in resolved if "dir_info" not in each["download_info"]}
    entries = re.findall(r"^\S[^\n]*(?:\n[ ][^\n]*)*", Path(lock).read_text(), re.MULTILINE)
    # A package may stand there several times, for different Pythons: pip takes the one whose marker fits.
    found: dict[str, list[str]] = {}
    for each in entries:
        found.setdefault(normal(re.split(r"[=\[ ;]", each, maxsplit=1)[0]), []).append(each)
    missing = sorted(wanted - found.keys())
    if missing:
        print(f"{lock} does not hold {', '.join(missing)}", file=sys.stderr)
        return 1
    print("\n".join(each for name in sorted(wanted) for each in found[name]))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
