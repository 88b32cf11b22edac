"""The HTTP API under /api/v1: stop an inference (DESIGN section 6)."""

from __future__ import annotations

import json
from typing import Annotated
from uuid import UUID

from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_POST
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from chat import runtime
from chat.stops import Outcome, Stop, stop

STATUS_OF = {Outcome.RECORDED: 202, Outcome.NOT_FOUND: 404, Outcome.UNAVAILABLE: 503}


class StopRequest(BaseModel):
    """The body of a stop."""

    model_config = ConfigDict(extra="forbid", strict=True)

    inference_id: Annotated[UUID, Field(strict=False)]
    position: Annotated[int, Field(ge=0)] | None = None


@require_POST
async def stop_inference(request: HttpRequest) -> JsonResponse:
    """Stop an inference by the session's person: 200, 202 or 404 with the outcome, else the error object."""
    user = await request.auser()
    if not user.is_authenticated:
        return error(401, "not_signed_in", "Sign in first.")
    try:
        body = StopRequest.model_validate(json.loads(request.body))
    except (ValueError, ValidationError, RecursionError):
        return error(400, "bad_frame", "The body is JSON: an inference_id and, if you know it, a position.")
    press = Stop(user=user, inference_id=body.inference_id, position=body.position, source="api")
    result = await stop(runtime.current().worker, press)
    if result.outcome is Outcome.UNAVAILABLE:
        return error(503, "unavailable", "The stop could not be written down; try again.")
    answer = {"inference_id": str(body.inference_id), "outcome": str(result.outcome), "position": result.position}
    return JsonResponse(answer, status=STATUS_OF.get(result.outcome, 200))


def error(status: int, code: str, detail: str) -> JsonResponse:
    """The one JSON shape of errors."""
    return JsonResponse({"error": {"code": code, "detail": detail}}, status=status)
