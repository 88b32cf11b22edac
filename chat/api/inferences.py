"""One inference over HTTP: its state, its events, and Stop (DESIGN section 6)."""

from __future__ import annotations

import asyncio
from typing import Annotated
from uuid import UUID

from django.conf import settings
from django.http import JsonResponse, StreamingHttpResponse
from ninja import Header, Query, Router

from chat import runtime
from chat.api.callers import ApiRequest
from chat.api.errors import error_response
from chat.api.events import event_response, refuse_too_many
from chat.api.reading import inference_out, visible_inference, visible_reply
from chat.api.shapes import ErrorOut, InferenceOut, StopBody, StopResultOut
from chat.database import rows
from chat.models import Inference
from chat.stops import Outcome, Stop, stop

router = Router(tags=["inferences"])

EVENTS = {
    "responses": {
        200: {
            "description": "`delta`... and `end` of docs/PROTOCOL.md; the id of a delta's event is its position.",
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
        }
    }
}
STATUS_OF = {Outcome.RECORDED: 202, Outcome.NOT_FOUND: 404}


@router.post(
    "/inference/stop",
    response={(200, 202, 404): StopResultOut, (400, 401, 403, 413, 429, 503): ErrorOut},
    summary="Stop a reply, exactly where you saw it stand",
)
async def stop_inference(request: ApiRequest, body: StopBody) -> JsonResponse:
    press = Stop(
        user=request.auth.user,
        inference_id=body.inference_id,
        position=body.position,
        source=Inference.StopSource.API.value,
    )
    here = runtime.current()
    retry_after = here.presses.retry_after(press.user.pk, press.inference_id) if settings.LIMITS else 0
    if retry_after:
        return error_response("rate_limited", "This reply was stopped too often.", retry_after=retry_after)
    # The worker's task: a press counts even when its connection closes behind it.
    result = await asyncio.shield(here.worker.spawn(stop(here.worker, press)))
    if result.outcome is Outcome.UNAVAILABLE:
        return error_response("unavailable", "The stop could not be written down; try again.")
    answer = {"inference_id": str(body.inference_id), "outcome": str(result.outcome), "position": result.position}
    return JsonResponse(answer, status=STATUS_OF.get(result.outcome, 200))


@router.get(
    "/inference/{inference_id}",
    response={200: InferenceOut, (400, 401, 404, 503): ErrorOut},
    summary="Where a reply stands: by its last checkpoint, at most a second old",
)
async def get_inference(request: ApiRequest, inference_id: UUID) -> InferenceOut:
    return inference_out(await rows.run(visible_reply, request.auth.user, inference_id))


@router.get(
    "/inference/{inference_id}/events",
    response={(400, 401, 404, 429, 503): ErrorOut},
    openapi_extra=EVENTS,
    summary="Follow a reply from a position",
)
async def follow_inference(
    request: ApiRequest,
    inference_id: UUID,
    position: Annotated[int, Query(ge=0, description="0, or that of the last delta you have.")] = 0,
    last_event_id: Annotated[
        str, Header(alias="Last-Event-ID", description="What a browser sends when it comes back; counts first.")
    ] = "",
) -> StreamingHttpResponse:
    refuse_too_many(request.auth)
    await rows.run(visible_inference, request.auth.user, inference_id)
    if last_event_id.isascii() and last_event_id.isdigit():
        position = int(last_event_id[:10])
    return event_response(request.auth, inference_id, position)
