"""What pyproject.toml cannot say: the native path is built into a wheel where there is a C compiler.

In: `CC`, and `WHEEL_PLATFORM` where the library has to be inside (`make wheels`, images). Out: a wheel for one platform
and every Python; without a compiler one without the library, for every platform.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

_HERE = Path(__file__).resolve().parent


def _build_module():
    # By its file: what the package needs is not installed while its wheel is made.
    spec = importlib.util.spec_from_file_location("native_build", _HERE / "connector" / "native" / "build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class BuildWithKernel(build_py):
    """Modules, and the kernel's library beside its sources."""

    built = False

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return  # a clone has its own: `make setup`
        native = _build_module()
        command = native.compiler()
        folder = Path(self.build_lib, "connector", "native", "kernel")
        if command is None:
            if os.environ.get("WHEEL_PLATFORM") and os.environ.get("CC") != "none":
                raise SystemExit("no C compiler for the native path of this wheel: CC=none makes it without")
            print("no C compiler: a wheel without the native path", file=sys.stderr)
            return
        try:
            native.build(command, folder / native.LIBRARY.name, folder=folder)
        except (subprocess.SubprocessError, OSError) as error:
            if os.environ.get("WHEEL_PLATFORM"):
                raise
            print(f"a wheel without the native path: {getattr(error, 'stderr', None) or error}", file=sys.stderr)
        else:
            BuildWithKernel.built = True


class TaggedWheel(bdist_wheel):
    """Of one platform where the library is inside, and of every Python either way."""

    def run(self) -> None:
        self.run_command("build")
        self.root_is_pure = not BuildWithKernel.built
        # Asked for where files go: what is of one platform belongs in the root of its wheel.
        self.distribution.has_ext_modules = lambda: BuildWithKernel.built
        super().run()

    def get_tag(self) -> tuple[str, str, str]:
        if not BuildWithKernel.built:
            return "py3", "none", "any"
        return "py3", "none", os.environ.get("WHEEL_PLATFORM") or super().get_tag()[2]


setup(cmdclass={"build_py": BuildWithKernel, "bdist_wheel": TaggedWheel})
