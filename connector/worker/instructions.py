"""What a supervisor tells a worker process that runs: one line on its stdin each, behind its order.

In and out: instructions, and the lines that hold them. Both ends are of one version.
"""

from __future__ import annotations

from enum import Enum


class Instruction(Enum):
    TRY_AGAIN = "try again what is FAILED"

    def line(self) -> bytes:
        return f"{self.name}\n".encode()


def from_lines(lines: bytes) -> list[Instruction]:
    """Those of whole lines."""
    return [Instruction[line.decode()] for line in lines.split(b"\n") if line]
