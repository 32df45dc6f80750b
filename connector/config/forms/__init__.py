"""The forms in which people have configurations: JSON, ``.properties``, YAML, variables, deployments, programs.

In: a path. Out: each configuration of the file as ``Wrapped``, or problems that say what to give instead. ``reading``
tells one form from another; ``containers`` finds what other tools wrap configurations in; one module for each tool.
"""

from __future__ import annotations

from connector.config.forms.no_json import no_json
from connector.config.forms.reading import read_configurations, read_json
from connector.config.forms.templates import OF_A_TEMPLATE, TEMPLATE
from connector.config.forms.wrapped import Wrapped

__all__ = ["OF_A_TEMPLATE", "TEMPLATE", "Wrapped", "no_json", "read_configurations", "read_json"]
