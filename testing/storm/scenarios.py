"""What people do in a storm. Each scenario is one inference in a room; the case keeps what was seen."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from testing.storm.case import Case
from testing.storm.replies import ENDING_BY_ITSELF, FAILING, STOPPABLE, TALKING, fast, long, one_of, steady

MAX_DELAY_SECONDS = 5.0
LOOKING_SECONDS = 2.5

Scenario = Callable[[Case], Awaitable[None]]


async def stop_from_the_asking_tab(case: Case) -> None:
    asking = await case.begin(one_of(STOPPABLE, case.dice))
    await _look(case)
    await case.press(asking)


async def stop_from_another_tab(case: Case) -> None:
    await case.begin(one_of(STOPPABLE, case.dice))
    await case.note_when_others_are_told()
    await _look(case)
    await case.tabs[1].show(case.inference_id)
    await case.press(case.tabs[1])


async def stop_by_http(case: Case) -> None:
    asking = await case.begin(one_of(STOPPABLE, case.dice))
    await _look(case)
    await case.press_by_http(asking)


async def stop_by_http_without_a_position(case: Case) -> None:
    asking = await case.begin(one_of(TALKING, case.dice))
    await _look(case)
    await case.press_by_http(asking, is_at_screen=False)


async def stop_that_is_late_on_its_way(case: Case) -> None:
    asking = await case.begin(long())
    await _look(case)
    await case.press(asking, delay_seconds=case.dice.uniform(0, MAX_DELAY_SECONDS))


async def stop_at_once(case: Case) -> None:
    asking = await case.begin(one_of(STOPPABLE, case.dice))
    await case.press(asking, position=0)


async def stop_from_two_tabs(case: Case) -> None:
    asking = await case.begin(one_of(TALKING, case.dice))
    await _look(case)
    await case.tabs[1].show(case.inference_id)
    behind = case.dice.randrange(0, 30)
    position = max(0, case.tabs[1].position(case.inference_id) - behind)
    await asyncio.gather(case.press(asking), case.press(case.tabs[1], position=position))


async def stop_twice(case: Case) -> None:
    asking = await case.begin(one_of(TALKING, case.dice))
    await _look(case)
    await case.press(asking)
    await case.press(asking)


async def stop_and_close_at_once(case: Case) -> None:
    asking = await case.begin(one_of(TALKING, case.dice))
    await _look(case)
    press = asyncio.create_task(case.press(asking))
    await asyncio.sleep(0.01)
    await asking.drop()
    await press


async def stop_and_ask_again(case: Case) -> None:
    asking = await case.begin(one_of(STOPPABLE, case.dice))
    await _look(case)
    press = asyncio.create_task(case.press(asking))
    await asyncio.sleep(case.dice.uniform(0.005, 0.1))
    await case.ask_next(asking)
    await press


async def stop_after_the_end(case: Case) -> None:
    asking = await case.begin(one_of((fast, steady), case.dice))
    await asking.wait_for_end(case.inference_id)
    position = case.dice.randrange(0, max(1, asking.position(case.inference_id) + 1))
    await case.press(asking, position=position)


async def read_to_the_end(case: Case) -> None:
    await case.begin(one_of(ENDING_BY_ITSELF, case.dice))
    await case.note_when_others_are_told()


async def close_the_asking_tab(case: Case) -> None:
    asking = await case.begin(one_of(TALKING, case.dice))
    await asking.drop()
    await _look(case)
    await asking.open()


async def lose_the_link_again_and_again(case: Case) -> None:
    await case.begin(one_of(TALKING, case.dice), watchers=2)
    for _ in range(8):
        await asyncio.sleep(case.dice.uniform(0.0, 0.4))
        await case.tabs[1].drop()
        await case.tabs[1].open()


async def reload_and_stop(case: Case) -> None:
    await case.begin(one_of(TALKING, case.dice))
    watching = case.tabs[1]
    await watching.show(case.inference_id)
    await _look(case)
    await watching.reload()
    await watching.wait_for_position(case.inference_id, 1, timeout_seconds=1)
    await case.press(watching)


async def the_model_fails(case: Case) -> None:
    await case.begin(one_of(FAILING, case.dice))


SCENARIOS: tuple[Scenario, ...] = (
    stop_from_the_asking_tab,
    stop_from_another_tab,
    stop_by_http,
    stop_by_http_without_a_position,
    stop_that_is_late_on_its_way,
    stop_at_once,
    stop_from_two_tabs,
    stop_twice,
    stop_and_close_at_once,
    stop_and_ask_again,
    stop_after_the_end,
    read_to_the_end,
    close_the_asking_tab,
    lose_the_link_again_and_again,
    reload_and_stop,
    the_model_fails,
)


async def _look(case: Case) -> None:
    """Some time in which the person reads."""
    await asyncio.sleep(case.dice.uniform(0.0, LOOKING_SECONDS))
