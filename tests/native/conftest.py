"""The kernel, built from the sources as they are. Where there is no C compiler there is nothing of it to test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from connector.native import BlockClient, Kernel, NoKernel
from connector.native.build import build, compiler
from tests.delivery.conftest import World, close, make_world

collect_ignore_glob = [] if compiler() is not None else ["test_*.py"]


@pytest.fixture(scope="session", autouse=True)
def kernel() -> Kernel:
    try:
        return Kernel()
    except NoKernel:
        command = compiler()
        assert command is not None
        build(command)
        return Kernel()


@pytest.fixture(scope="session")
def block_client(kernel: Kernel) -> BlockClient:
    return BlockClient(kernel)


@pytest.fixture
def world(kafka: Any, unique: Callable[[str], str]) -> Iterator[World]:
    built = make_world(kafka.bootstrap_servers, unique)
    yield built
    close(built)
