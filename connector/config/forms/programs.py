"""Configurations in files that are programs: Dockerfiles, scripts, Makefiles, Terraform, statements of ksqlDB.

In: the text of a file, and what it is. Out: the configurations in it, or a problem that says what to give instead.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from connector.config.environment import worker_properties
from connector.config.forms.container_runs import workers_in_containers
from connector.config.forms.dockerfile import image_variables
from connector.config.forms.ksql import connectors_of_ksql
from connector.config.forms.makefile import commands_of
from connector.config.forms.script_variables import ScriptVariables
from connector.config.forms.scripts import posted_connectors, posted_files, without_comments
from connector.config.forms.sourced import with_sourced
from connector.config.forms.terraform import terraform_connectors
from connector.config.forms.wrapped import Wrapped
from connector.errors import Problem


def configurations_of(
    file: str, form: str, text: str, environ: Mapping[str, str], folder: Path
) -> tuple[list[Wrapped], list[Problem]]:
    """``form``: what it is, by the name of its form. Files that it names are looked for in the ``folder``."""
    if form == "Dockerfile":
        variables, image = image_variables(text)
        properties, notes = worker_properties(variables, image)
        found = [Wrapped(properties, "image", notes)] if properties else []
        hint = "ENV lines with CONNECT_…; or the file that has them: compose, .env, .properties"
    elif form == "Terraform":
        found = terraform_connectors(text, environ, folder)
        hint = (
            "a connector's resource with connector_configuration or config; or `terraform show -json`, in a .json file"
        )
    elif form == "ksqlDB":
        found = connectors_of_ksql(text)
        hint = "CREATE SOURCE CONNECTOR name WITH ('connector.class' = '…', …);"
    else:
        text = commands_of(text, environ) if form == "Makefile" else with_sourced(without_comments(text), folder)
        text = without_comments(text)
        found = posted_connectors(text, environ)
        found += workers_in_containers(text, ScriptVariables(text, environ), folder)
        files = ", ".join(posted_files(text))
        if files:
            hint = f"give what it posts: {files}"
        elif re.search(r"^[ \t]*connector\.class[ \t]*[=:]", text, re.MULTILINE):
            hint = "give the lines with its connector.class in a file of their own: .properties or .yaml"
        else:
            hint = "curl -d '{…}' with a connector.class, or docker run -e CONNECT_…"
    return found, [] if found else [
        Problem(form, "Holds no connector and no worker that can be read", None, hint, file)
    ]
