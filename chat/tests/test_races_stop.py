"""Stop in every phase of a reply, on three workers: the model is freed, and what was on the screen is what stays."""

from __future__ import annotations

import asyncio

import psycopg
import pytest

from testing.model_server import ModelServer, Script
from testing.model_server.script import ENDING, OPENING
from testing.server_process import wait_until
from testing.storm.room import open_room
from testing.workers import Site

pytestmark = pytest.mark.processes

WORDS = "{n}:{word} "
RETRY_LATER: Script = {"status": 503, "headers": {"Retry-After": "5"}, "json": {"error": {"message": "busy"}}}
PHASES: dict[str, Script] = {
    "before the headers": {"delay_seconds": 60},
    "before the first token": {"steps": [OPENING, {"wait_go": True}]},
    "during reasoning": {"steps": [OPENING, {"reasoning": WORDS, "repeat": 200, "pace_seconds": 0.05}]},
    "during content": {"steps": [OPENING, {"text": WORDS, "repeat": 200, "pace_seconds": 0.05}]},
    "in a stall": {"steps": [OPENING, {"text": WORDS, "repeat": 5}, {"stall": True}]},
    "with the last chunk in flight": {"steps": [OPENING, {"text": WORDS, "repeat": 5}, {"wait_go": True}, *ENDING]},
    "during a retry pause": RETRY_LATER,
}
WITHOUT_TEXT = {"before the headers", "before the first token", "during a retry pause"}


@pytest.mark.parametrize("phase", PHASES)
async def test_a_stop_frees_the_model_within_a_second(site: Site, model_server: ModelServer, phase: str) -> None:
    """I2, and I1 for both screens, in each phase that a reply goes through."""
    async with open_room(site, model_server, PHASES[phase]) as room:
        inference_id = await room.ask()
        await asyncio.to_thread(
            model_server.wait_request, room.model, states=("waiting_headers", "streaming", "complete")
        )
        if phase not in WITHOUT_TEXT:
            await room.other.wait_for_position(inference_id, 8)
        shown = room.other.text(inference_id)
        result = await room.other.stop(inference_id, len(shown))
        assert (result["outcome"], result["position"]) == ("stopped", len(shown))
        request = (await asyncio.to_thread(model_server.requests, room.model))[-1]
        await asyncio.to_thread(model_server.wait_closed, request.id)
        assert [end["status"] for end in await room.ends(inference_id)] == ["stopped", "stopped"]
        row = await room.row(inference_id)
        assert (row.status, row.text) == ("stopped", shown)
        assert room.asking.text(inference_id) == room.other.text(inference_id) == shown
        assert len(await asyncio.to_thread(model_server.requests, room.model)) == 1, "no retry after the stop"


async def test_a_stop_between_the_models_end_and_the_commit_still_cuts(site: Site, model_server: ModelServer) -> None:
    """The owner has the whole reply and waits for the row's lock; the screen had shown less."""
    script: Script = {"steps": [OPENING, {"text": WORDS, "repeat": 5}, {"wait_go": True}, *ENDING]}
    async with open_room(site, model_server, script) as room:
        inference_id = await room.ask()
        await room.asking.wait_for_position(inference_id, 8)
        with psycopg.connect(site.variables["DATABASE_URL"]) as connection:
            connection.execute("SELECT 1 FROM chat_inference WHERE id = %s FOR UPDATE", [inference_id])
            await asyncio.to_thread(model_server.go, room.model)
            await asyncio.to_thread(wait_until, lambda: has_blocked_save(site), "the owner saves")
            pressing = asyncio.create_task(room.asking.stop(inference_id, 5))
            # Longer than a stop waits for the database, so that it goes to the owner unrecorded.
            await asyncio.wait({pressing}, timeout=1.5)
            assert not pressing.done()
            connection.rollback()
        result = await pressing
        assert (result["outcome"], result["position"]) == ("stopped", 5)
        row = await room.row(inference_id)
        assert (row.status, row.position) == ("stopped", 5)
        assert {end["position"] for end in await room.ends(inference_id)} == {5}


def has_blocked_save(site: Site) -> bool:
    """Whether the owner's last save waits for a lock. In a transaction of its own, which sees the activity of now."""
    waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'SELECT %'"
    with psycopg.connect(site.variables["DATABASE_URL"]) as connection:
        return connection.execute(waiting).fetchone() is not None


async def test_a_stop_after_the_model_finished_but_before_the_screen_did_cuts_every_screen(
    site: Site, model_server: ModelServer
) -> None:
    script: Script = {"steps": [OPENING, {"text": WORDS, "repeat": 30}, *ENDING]}
    async with open_room(site, model_server, script) as room:
        inference_id = await room.ask()
        assert [end["status"] for end in await room.ends(inference_id)] == ["completed", "completed"]
        result = await room.other.stop(inference_id, 7)
        assert (result["outcome"], result["position"]) == ("cut_after_finish", 7)
        assert [(end["status"], end["position"]) for end in await room.ends(inference_id)] == [("stopped", 7)] * 2
        assert (await room.row(inference_id)).text == room.asking.text(inference_id) == room.other.text(inference_id)


async def test_of_two_tabs_at_different_positions_the_first_to_arrive_counts_for_both(
    site: Site, model_server: ModelServer
) -> None:
    async with open_room(site, model_server, PHASES["during content"]) as room:
        inference_id = await room.ask()
        position = await room.other.wait_for_position(inference_id, 40)
        results = await asyncio.gather(
            room.asking.stop(inference_id, position), room.other.stop(inference_id, position - 11)
        )
        assert {result["outcome"] for result in results} == {"stopped", "already_stopped"}
        assert results[0]["position"] == results[1]["position"]
        row = await room.row(inference_id)
        assert row.position == results[0]["position"]
        await room.ends(inference_id)
        assert room.asking.text(inference_id) == room.other.text(inference_id) == row.text


async def test_a_stop_through_another_room_of_the_same_person_is_not_found(
    site: Site, model_server: ModelServer
) -> None:
    async with (
        open_room(site, model_server, PHASES["during content"]) as room,
        open_room(site, model_server, PHASES["during content"]) as elsewhere,
    ):
        inference_id = await room.ask()
        assert (await elsewhere.asking.stop(inference_id, 0))["outcome"] == "not_found"
        assert (await room.row(inference_id)).stopped_at is None
        await room.asking.stop(inference_id)


async def test_the_asking_socket_may_go_at_once_behind_its_stop(site: Site, model_server: ModelServer) -> None:
    async with open_room(site, model_server, PHASES["during content"]) as room:
        inference_id = await room.ask()
        position = await room.asking.wait_for_position(inference_id, 20)
        await room.asking.send("stop", inference_id=inference_id, position=position)
        await room.asking.abort()
        end = await room.other.wait_for("end", inference_id=inference_id)
        assert (end["status"], end["position"]) == ("stopped", position)


async def test_a_tab_that_lags_behind_cuts_where_it_stood_when_it_was_pressed(
    site: Site, model_server: ModelServer
) -> None:
    """CASES 1: whatever the stop's delay on its way."""
    async with open_room(site, model_server, PHASES["during content"]) as room:
        inference_id = await room.ask()
        position = await room.other.wait_for_position(inference_id, 30)
        shown = room.other.text(inference_id)
        await room.asking.wait_for_position(inference_id, position + 200)
        result = await room.other.stop(inference_id, position)
        assert (result["outcome"], result["position"]) == ("stopped", position)
        assert (await room.row(inference_id)).text == shown[:position]


async def test_a_stop_right_after_send_shows_no_token_and_the_next_prompt_is_answered(
    site: Site, model_server: ModelServer
) -> None:
    """CASES 2 and 7: at the moment the reply is announced, ten times in a room."""
    async with open_room(site, model_server, PHASES["during content"]) as room:
        for number in range(10):
            inference_id = (await room.asking.ask(f"Prompt {number}", model=room.model))["inference_id"]
            result = await room.asking.stop(inference_id, 0)
            assert (result["outcome"], result["position"]) == ("stopped", 0)
            assert (await room.row(inference_id)).text == room.asking.text(inference_id) == ""
        assert not [
            request for request in await asyncio.to_thread(model_server.requests, room.model) if request.is_live
        ]
        answered = await room.asking.ask("And now?", model="echo")
        await room.asking.wait_for("end", inference_id=answered["inference_id"], status="completed")


async def test_a_stop_hits_its_own_inference_and_not_the_prompt_right_behind_it(
    site: Site, model_server: ModelServer
) -> None:
    """CASES 4 and 5: stop, and within milliseconds the next prompt; a second press changes nothing."""
    async with open_room(site, model_server, PHASES["during content"]) as room:
        inference_id = await room.ask()
        for number in range(8):
            await room.asking.wait_for_position(inference_id, 5)
            await room.asking.send("stop", inference_id=inference_id)
            following = (await room.asking.ask(f"Next {number}", model=room.model))["inference_id"]
            late = await room.other.stop(inference_id, 1)
            assert late["outcome"] == "already_stopped"
            assert (await room.row(inference_id)).status == "stopped"
            assert (await room.row(following)).status in {"pending", "streaming"}
            inference_id = following
        await room.asking.stop(inference_id)
