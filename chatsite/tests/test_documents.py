"""What the documents name exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parent.parent.parent
NAMED_TEST = re.compile(r"`([\w/]+\.py)::(test_\w+)`")


@pytest.mark.parametrize(("path", "test"), NAMED_TEST.findall((PROJECT / "docs" / "PROOF.md").read_text()), ids=str)
def test_a_test_that_the_proof_names_exists(path: str, test: str) -> None:
    assert f"def {test}(" in (PROJECT / path).read_text()
