"""A short storm in every run of the tests; `make soak` is the long one."""

from __future__ import annotations

import pytest

from testing.storm.__main__ import table
from testing.storm.run import Options, run_storm

pytestmark = pytest.mark.processes

SEED = 7


@pytest.mark.timeout(240)
def test_no_invariant_breaks_in_a_short_storm() -> None:
    """To see it alone: `make soak SOAK='--inferences 30 --lanes 8 --hasty --seed 7 --hostile-frames 500'`."""
    report = run_storm(
        Options(inferences=30, lanes=8, seed=SEED, is_hasty=True, hostile_frames=500, silence_seconds=0.0)
    )
    assert not report.violations, table(report)
