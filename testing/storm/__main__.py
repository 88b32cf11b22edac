"""`python -m testing.storm --inferences 1000 --seed 7`: a storm, a table of what it found, and an exit code."""

from __future__ import annotations

import argparse
import random
import signal
import sys

from testing.storm.run import Options, Report, run_storm

ASIDES = ("beforehand", "hostile frames", "after a silence", "afterwards", "in the logs")
"""What is checked besides the scenarios."""


def main() -> int:
    """1 when an invariant was violated."""
    parser = argparse.ArgumentParser(prog="python -m testing.storm", description=__doc__)
    parser.add_argument("--inferences", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    parser.add_argument("--minutes", type=float, default=60.0, help="start nothing new after so long")
    parser.add_argument("--lanes", type=int, default=12, help="so many rooms at the same time")
    parser.add_argument("--calm", action="store_true", help="break nothing")
    parser.add_argument("--hasty", action="store_true", help="break the next thing at once")
    parser.add_argument("--hostile-frames", type=int, default=10_000)
    parser.add_argument("--silence-seconds", type=float, default=600.0, help="before the last stop")
    given = parser.parse_args()
    # Whoever ends it ends its servers too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.stdout.write(f"storm with --seed {given.seed}\n")
    sys.stdout.flush()
    options = Options(
        inferences=given.inferences,
        workers=given.workers,
        seed=given.seed,
        minutes=given.minutes,
        lanes=given.lanes,
        has_weather=not given.calm,
        is_hasty=given.hasty,
        hostile_frames=given.hostile_frames,
        silence_seconds=given.silence_seconds,
    )
    report = run_storm(options)
    sys.stdout.write(table(report))
    return 1 if report.violations else 0


def table(report: Report) -> str:
    """The report for people."""
    violated = [scenario for scenario, _ in report.violations]
    lines = [f"{'scenario':36} {'count':>6} {'violations':>10}"]
    lines += [f"{name:36} {count:6} {violated.count(name):10}" for name, count in sorted(report.counts.items())]
    lines += [f"{name:36} {'':6} {violated.count(name):10}" for name in ASIDES]
    lines += ["", "faults: " + _counted(report.faults), "outcomes: " + _counted(report.outcomes)]
    lines += ["", *(f"{scenario}: {sentence}" for scenario, sentence in report.violations)]
    lines += ["", *report.details]
    total = sum(report.counts.values())
    lines += [f"{total} inferences, {len(report.violations)} violations, {report.seconds:.0f} s, seed {report.seed}"]
    return "\n".join(lines) + "\n"


def _counted(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items())) or "none"


if __name__ == "__main__":
    sys.exit(main())
