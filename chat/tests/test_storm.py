"""A short storm in every run of the tests; `make soak` is the long one."""

from __future__ import annotations

import random
import sys

import pytest

from testing.storm.__main__ import table
from testing.storm.run import Options, run_storm

pytestmark = pytest.mark.processes

FIXED_SEED = 7
RANDOM_SEED = random.SystemRandom().randrange(1_000_000)


@pytest.mark.timeout(180)
@pytest.mark.parametrize("seed", [pytest.param(FIXED_SEED, id="fixed"), pytest.param(RANDOM_SEED, id="random")])
def test_no_invariant_breaks_in_a_short_storm(seed: int) -> None:
    """To see the same dice again: `python -m testing.storm --inferences 16 --lanes 8 --hasty --seed SEED`."""
    sys.stdout.write(f"seed {seed}\n")
    report = run_storm(Options(inferences=16, lanes=8, seed=seed, is_hasty=True))
    assert not report.violations, table(report)
