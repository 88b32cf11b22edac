"""Runs a storm: lanes of people doing one thing after another while the weather breaks what it can."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from dataclasses import dataclass, field

from testing.storm.case import Case
from testing.storm.cost import check_cost
from testing.storm.hostile import check_hostile_frames
from testing.storm.idle import check_idle, idle, logged_errors
from testing.storm.row import ROWS, Row
from testing.storm.scenarios import SCENARIOS
from testing.storm.silence import check_stop_after_silence
from testing.storm.stage import Stage
from testing.storm.verdict import Verdict
from testing.storm.weather import Weather

LANES = 12
CASES_PER_ROOM = 8


@dataclass(frozen=True)
class Options:
    """How large a storm, and which one: the same seed throws the same dice."""

    inferences: int = 1000
    workers: int = 3
    seed: int = 0
    minutes: float = 60.0
    lanes: int = LANES
    has_weather: bool = True
    is_hasty: bool = False
    """Whether one fault follows the other at once, for a short storm."""
    hostile_frames: int = 10_000
    silence_seconds: float = 600.0
    """How long nobody does anything before a last stop."""


@dataclass
class Report:
    """What came of a storm. `violations` are pairs of scenario and sentence."""

    seed: int
    counts: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    violations: list[tuple[str, str]] = field(default_factory=list)
    details: list[str] = field(default_factory=list)
    seconds: float = 0.0


def run_storm(options: Options) -> Report:
    """Start everything, let it storm, end everything."""
    with Stage(workers=options.workers, dice=random.Random(options.seed)) as stage:
        storm = Storm(stage, options)
        asyncio.run(storm.run())
        return storm.report


class Storm:
    """One storm on a stage."""

    def __init__(self, stage: Stage, options: Options) -> None:
        self.report = Report(options.seed)
        self._stage = stage
        self._options = options
        self._weather = Weather(stage, random.Random(options.seed + 1), is_hasty=options.is_hasty)
        self._numbers = iter(range(options.inferences))
        self._ends_at = time.monotonic() + options.minutes * 60
        self._cases: list[Case] = []

    async def run(self) -> None:
        began_at = time.monotonic()
        rooms = await self._make_rooms()
        before = await asyncio.to_thread(idle, self._stage)
        costs = await check_cost(self._stage, self._stage.person(rooms[0][0]), rooms[0][1])
        self.report.violations += [("beforehand", sentence) for sentence in costs]
        weather = asyncio.create_task(self._weather.run() if self._options.has_weather else asyncio.sleep(0))
        try:
            await asyncio.gather(*(self._run_lane(rooms) for _ in range(self._options.lanes)))
        finally:
            weather.cancel()
            await asyncio.wait({weather})
            await asyncio.to_thread(self._weather.calm_down)
        if not weather.cancelled():
            weather.result()
        await asyncio.to_thread(self._judge)
        await self._run_epilogue()
        redis_faults = len(self._weather.between(0, time.monotonic(), "redis"))
        left = await asyncio.to_thread(check_idle, self._stage, before, redis_faults=redis_faults)
        self.report.violations += [("afterwards", sentence) for sentence in left]
        self.report.violations += [("in the logs", line) for line in logged_errors(self._stage)]
        self.report.seconds = time.monotonic() - began_at

    async def _run_epilogue(self) -> None:
        """What wants no weather: hostile frames, and a stop after a long silence."""
        people = self._stage.person(0), self._stage.person(1)
        dice = random.Random(self._options.seed + 2)
        hostile = await check_hostile_frames(*people, self._options.hostile_frames, dice)
        self.report.violations += [("hostile frames", sentence) for sentence in hostile]
        silent = await check_stop_after_silence(self._stage, self._options.silence_seconds)
        self.report.violations += [("after a silence", sentence) for sentence in silent]

    async def _make_rooms(self) -> list[tuple[int, str]]:
        count = max(self._options.lanes, -(-self._options.inferences // CASES_PER_ROOM))
        return [
            (number, await asyncio.to_thread(self._stage.person(number).create_room, f"Room {number}"))
            for number in range(count)
        ]

    async def _run_lane(self, rooms: list[tuple[int, str]]) -> None:
        person, room_id = rooms.pop()
        done = 0
        for number in self._numbers:
            if time.monotonic() > self._ends_at:
                return
            if done == CASES_PER_ROOM and rooms:
                (person, room_id), done = rooms.pop(), 0
            done += 1
            await self._run_case(self._case(number, person, room_id))

    def _case(self, number: int, person: int, room_id: str) -> Case:
        dice = random.Random(f"{self._options.seed} {number}")
        case = Case(number, self._stage, self._stage.person(person), room_id, dice)
        self._cases.append(case)
        return case

    async def _run_case(self, case: Case) -> None:
        # Each scenario as often as the others, whatever the dice.
        scenario = SCENARIOS[(case.number + self._options.seed) % len(SCENARIOS)]
        case.scenario = scenario.__name__
        try:
            await scenario(case)
            await case.settle()
            if case.has_next_prompt_at == float("inf"):
                await case.ask_next(case.tabs[0])
        except Exception as error:
            case.violations.append(f"{type(error).__name__}: {str(error)[:1500]}")
        finally:
            await case.finish()

    def _judge(self) -> None:
        rows = {str(fields["id"]): Row.of(fields) for fields in self._stage.query(ROWS)}
        report = self.report
        for case in self._cases:
            row = rows.get(case.inference_id)
            report.counts[case.scenario] += 1
            report.outcomes.update(press.outcome or "none" for press in case.presses)
            report.outcomes.update([f"row {row.status}" if row else "no row"])
            sentences = Verdict(case, row, self._weather).violations()
            report.violations += [(case.scenario, f"{_name(case)}: {sentence}") for sentence in sentences]
            if sentences:
                report.details += [_name(case), *case.describe(), f"    {row}"[:300], *self._faults_during(case)]
        report.faults.update(fault.kind for fault in self._weather.diary)

    def _faults_during(self, case: Case) -> list[str]:
        subjects = ("redis", "postgres", "worker")
        faults = self._weather.between(case.asked_at, case.agreed_at or float("inf"), *subjects)
        return [
            f"    {fault.kind} {fault.began_at - case.asked_at:+.1f} to {fault.ended_at - case.asked_at:+.1f}"
            for fault in faults
        ]


def _name(case: Case) -> str:
    return f"#{case.number} {case.reply.kind} {case.inference_id[:8]}"
