"""Templates, `{{ name }}`, which Helm, Ansible and others fill in before anybody reads the file.

In: a text. Out: whether it is, or holds, what is yet to be filled in.
"""

from __future__ import annotations

import re

TEMPLATE = re.compile(r"\{\{[^{}]*\}\}|\{%[^{}]*%\}|<%[^<>]*%>")
OF_A_TEMPLATE = "it is a template: give what is made of it (`helm template`, say)"
#: Where the text is no YAML or JSON because of them, one may be cut off.
_BEGIN = re.compile(r"\{\{|\{%|<%")


def template_hint(text: str) -> str | None:
    return OF_A_TEMPLATE if _BEGIN.search(text) else None
