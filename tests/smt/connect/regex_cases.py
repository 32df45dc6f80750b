"""Expressions for names of topics: what Java's can do, and random ones made of that."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

ROUTER = "org.apache.kafka.connect.transforms.RegexRouter"
TOPICS = ["shop.ks.orders", "shop.ks.t1", "a-b", "x", "Shop.KS.T", "aab.c", "orders[1]", "ks_&&_t", "a&b^c"]

CHOSEN = [
    *((r"[a-z[A-Z]]+\.(.*)", "$1"), (r"[\w[.-]]+", "u"), (r"[\w-.]+", "u"), (r"[a-z&&[^s]]+.*", "i"), (r"[&&]+", "x")),
    *((r"[a-z&&[^aeiou]&&[^x-z]]+.*", "i"), (r"[^a-z&&[^s]]+", "n"), (r"[^\W]+(.*)", "$1"), (r"[[:alpha:]]+.*", "p")),
    *((r"[\Q.\E\w]+", "q"), (r"\Qshop.\E(.*)", "q-$1"), (r"a\Q-\Eb", "y"), (r"\Qa-b", "y"), (r"a-b\E", "y")),
    *((r"\p{L}+.*", "l"), (r"\pL+.*", "l"), (r"\P{L}+.*", "l"), (r"\p{Lower}+\.\p{Graph}+", "g"), (r"\p{Print}+", "y")),
    *((r"\p{javaLowerCase}+.*", "j"), (r"\p{Cntrl}*(.*)", "$1"), (r"[\p{Alpha}.]+", "y"), (r"[^\p{Alpha}]+", "y")),
    *((r"[\P{Alpha}a-c]+", "y"), (r"\p{Nix}", "y"), (r"\h*(.*)", "$1"), (r"[\H]+", "y"), (r"\v?(.*)\R?", "$1")),
    *((r"shop(?i)\.KS\.(.*)", "$1"), (r"(?i:SHOP)\.(.*)", "$1"), (r"(?i)shop(?-i)\.ks\.(.*)", "$1"), ("(?i)", "y")),
    *((r"a(?i)AB\.c|X|A-B", "y"), (r"(a(?i)A)B\.c", "y"), (r"((?i)A)B\.c|AAB\.C", "y"), (r"(?iu)SHOP.*", "y")),
    *((r"(?x) shop \. (.*)  # comment", "$1"), (r"(?x: a - b )", "y"), (r"(?x)a [- ] b", "y"), (r"(?U)(\w+).*", "$1")),
    *((r"(?<a_b>shop).*", "x"), (r"(?P<a>shop).*", "x"), (r"(?#comment)(.*)", "$1"), (r"(?(1)a|b)", "x")),
    *((r"(?<a>shop)\.(?<b1>ks)\.(.*)", "${b1}-${a}-$3"), (r"(?<w>\w)\k<w>(.*)", "$2"), (r"(\w)\1b(.*)", "$2")),
    *((r"(a)\11.*", "y"), (r"(.)(.)(.)(.)(.)(.)(.)(.)(.)(.)(.*)", "$11-$10-$12"), (r"(?<!x)(.*)", "$1")),
    *(
        (r"orders[\[]1[\]]", "y"),
        (r"orders[[]1[]]", "y"),
        (r"[]a]+.*", "y"),
        (r"[^]a]+.*", "y"),
        ("]", "y"),
        ("a}", "y"),
    ),
    *((r"shop\x2e(.*)", "$1"), (r"shop\u002e(.*)", "$1"), (r"shop\056(.*)", "$1"), (r"shop\0056(.*)", "$1")),
    *(
        (r"shop\x{2e}(.*)", "$1"),
        (r"\cA?(.*)", "$1"),
        (r"\e?(.*)", "$1"),
        (r"\ud83d\ude00?(.*)", "$1"),
        (r"\x{fffffff}", ""),
    ),
    *((r"\Ashop(.*)\z", "$1"), (r"\Gshop(.*)\Z", "$1"), (r"^shop(.*)$", "$1"), (r"\b(.*)\b", "$1"), (r"\B.*", "y")),
    *((r"a{,2}.*", "y"), (r"x{0}.*", "y"), (r"a{2}b.*", "y"), ("*a", "y"), ("+", "y"), ("a**", "y"), (r"a++b.*", "y")),
    *((r"(?>a+)b(.*)", "$1"), (r"(.{1,4}+).*", "$1"), (r"(.*+)", "$1"), (r"(a|ab)(.*?)(?:\.|$)(.*)", "$1")),
    *((r"\i", "x"), (r"a\-b", "y"), (r"\y", "y"), (r"\N", "y"), ("a)", "y"), ("(a", "y"), ("[a", "y"), ("[z-a]", "y")),
    *(
        (r"[a-\x63]+.*", "y"),
        (r"[\x61-c]+.*", "y"),
        (r"[a-]+.*", "y"),
        (r"[a-[b]]+", "y"),
        ("[a&&]", "y"),
        (r"[\b]", "y"),
    ),
]


def _members(rng: random.Random, depth: int) -> str:
    """What stands between brackets."""
    parts = ["a-z", "s", r"\w", r"\d", r"\-", ".", "o-t", r"\W", r"\.", "_", "ks", r"\p{Upper}", r"\P{Punct}"]
    made = "".join(rng.choice(parts) for _ in range(rng.randrange(1, 4)))
    if depth and rng.random() < 0.4:
        made += _bracketed(rng, depth - 1)
    if depth and rng.random() < 0.3:
        made += "&&" + rng.choice([_bracketed(rng, depth - 1), "a-m", "^a", r"[^\d]"])
    return made


def _bracketed(rng: random.Random, depth: int) -> str:
    return f"[{rng.choice(['', '', '^'])}{_members(rng, depth)}]"


def _expression(rng: random.Random, depth: int) -> str:
    parts = []
    for _ in range(rng.randrange(1, 4)):
        dice = rng.random()
        if depth and dice < 0.25:
            opening = rng.choice(["(", "(", "(?:", "(?i:", "(?>", "(?=", "(?!", "(?-i:"])
            parts.append(f"{opening}{_expression(rng, depth - 1)})")
        elif dice < 0.55:
            parts.append(_bracketed(rng, 2))
        elif dice < 0.62:
            parts.append(rng.choice(["(?i)", "(?-i)", "|", "(?x)"]))
            continue
        else:
            parts.append(rng.choice(["shop", "a", ".", r"\.", "ks", r"\w", ".*", "S", r"\Qa-\E", "b", "x", "o"]))
        parts.append(
            rng.choice(["", "", "", "+", "*", "?", "{1,3}", "*?", "++"]) if parts[-1] not in (".*", "|") else ""
        )
    return "".join(parts)


def regex_cases() -> Iterator[dict[str, Any]]:
    """Cases of the router."""
    rng = random.Random("expressions 1")
    random_ones = [(f"{_expression(rng, 2)}(.*)", rng.choice(["<$0>", "y"])) for _ in range(400)]
    records = [{"topic": topic, "key": None, "value": None, "headers": []} for topic in TOPICS]
    for regex, replacement in (*CHOSEN, *random_ones):
        options = {"regex": regex, "replacement": replacement}
        yield {"chain": [{"type": ROUTER, "options": options}], "records": records}
