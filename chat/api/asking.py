"""Asking over HTTP: a prompt, or another reply to one; answered by events as they come, or by the whole."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.http import StreamingHttpResponse
from ninja import Router

from chat import runtime
from chat.access import Door, Visit
from chat.api.callers import ApiRequest, Caller
from chat.api.errors import not_found
from chat.api.events import event_response, refuse_too_many, wait_for_end
from chat.api.reading import inference_out, message_out, visible_reply, visible_room
from chat.api.shapes import AgainBody, Answer, AskBody, ErrorOut
from chat.asking import Asking, Prompt, frames_of
from chat.database import rows
from chat.frames import Continue, Regenerate, Send
from chat.models import Inference, Membership
from chat.prompts import Taken

router = Router(tags=["asking"])

EVENTS: dict[str, Any] = {
    "responses": {
        200: {
            "description": "The prompt with its whole reply; with `stream`, the frames `message`, `start`, `delta`..., "
            "`end` of docs/PROTOCOL.md as server-sent events.",
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
        }
    }
}
RESPONSES = {200: Answer, (400, 401, 403, 404, 409, 413, 429, 503): ErrorOut}

Reply = Answer | StreamingHttpResponse


@router.post("/rooms/{room_id}/ask", response=RESPONSES, openapi_extra=EVENTS, summary="Send a prompt")
async def ask(request: ApiRequest, room_id: UUID, body: AskBody) -> Reply:
    names = {name: getattr(body, name) for name in body.model_fields_set if name not in {"client_id", "stream"}}
    frame = Send(type="send", client_id=body.client_id, **names)
    return await _answer(request.auth, room_id, frame, is_streamed=body.stream)


@router.post("/rooms/{room_id}/regenerate", response=RESPONSES, openapi_extra=EVENTS, summary="Another reply")
async def regenerate(request: ApiRequest, room_id: UUID, body: AgainBody) -> Reply:
    frame = Regenerate(type="regenerate", client_id=body.client_id, message_id=body.message_id)
    return await _answer(request.auth, room_id, frame, is_streamed=body.stream)


@router.post("/rooms/{room_id}/continue", response=RESPONSES, openapi_extra=EVENTS, summary="Go on with a reply")
async def proceed(request: ApiRequest, room_id: UUID, body: AgainBody) -> Reply:
    frame = Continue(type="continue", client_id=body.client_id, message_id=body.message_id)
    return await _answer(request.auth, room_id, frame, is_streamed=body.stream)


async def _answer(caller: Caller, room_id: UUID, frame: Prompt, *, is_streamed: bool) -> Reply:
    if is_streamed:
        refuse_too_many(caller)
    room = await rows.run(visible_room, caller.user, room_id)
    # `chat.prompts` looks in its transaction whether the person may write here.
    visit = Visit(Door("", room.pk), caller.user, room, role=Membership.Role.READER)
    taken = await Asking(runtime.current(), visit).take(frame)
    inference_id = await rows.run(_inference_id, taken)
    if is_streamed:
        return event_response(caller, inference_id, 0, first=frames_of(taken, frame.client_id))
    await wait_for_end(inference_id)
    return await rows.run(_whole, caller.user, taken, inference_id)


def _inference_id(taken: Taken) -> UUID:
    """A prompt that was taken before may have a reply that is over."""
    if taken.inference is not None:
        return taken.inference.pk
    found = Inference.objects.filter(message=taken.reply).values_list("pk", flat=True).first()
    if found is None:
        raise not_found("reply")
    return found


def _whole(user: User, taken: Taken, inference_id: UUID) -> Answer:
    # One row for both: a late stop may cut the reply back at any moment.
    reply = visible_reply(user, inference_id)
    return Answer(
        prompt=message_out(taken.prompt) if taken.prompt else None,
        reply=message_out(reply.message),
        inference=inference_out(reply),
    )
