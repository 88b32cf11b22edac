"""The fixture `model_server`, which a conftest imports."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from testing.model_server.client import ModelServer


@pytest.fixture(scope="session")
def model_server() -> Iterator[ModelServer]:
    """One scripted server for the whole run; tests keep apart by their model names."""
    with ModelServer() as server:
        yield server
