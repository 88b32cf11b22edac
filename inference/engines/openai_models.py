"""The models a server offers, remembered for a while. Called by `openai_api`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from openai import AsyncOpenAI

from inference.engine import EngineError, ErrorCode
from inference.engines.openai_errors import REQUEST_ERRORS, error_of_exception
from inference.engines.openai_payload import model_names, parse_payload

MODELS_TIMEOUT_SECONDS = 10.0
ERROR_CACHE_SECONDS = 10.0  # a server that is down is not asked anew for every page


class ModelList:
    """The configured names, or else those of GET /v1/models in the server's order."""

    def __init__(self, client: AsyncOpenAI, configured: Sequence[str], *, cache_seconds: float) -> None:
        self._client = client
        self._configured = tuple(configured)
        self._cache_seconds = cache_seconds
        self._known: tuple[str, ...] | EngineError = ()
        self._known_until = 0.0
        self._asking = asyncio.Lock()

    async def names(self) -> Sequence[str]:
        """Raises EngineError, also one that is remembered."""
        if self._configured:
            return self._configured
        async with self._asking:  # one question at a time, whose answer serves all who wait
            if time.monotonic() >= self._known_until:
                await self._refresh()
        if isinstance(self._known, EngineError):
            raise EngineError(self._known.code, str(self._known))
        return self._known

    async def _refresh(self) -> None:
        try:
            self._known, seconds = await self._ask(), self._cache_seconds
        except EngineError as error:
            self._known, seconds = error.with_traceback(None), ERROR_CACHE_SECONDS
        self._known_until = time.monotonic() + seconds

    async def _ask(self) -> tuple[str, ...]:
        try:
            async with asyncio.timeout(MODELS_TIMEOUT_SECONDS):
                response = await self._client.models.with_raw_response.list()
        except TimeoutError as error:
            raise EngineError(ErrorCode.TIMEOUT, "the model server did not list its models in time") from error
        except REQUEST_ERRORS as error:
            raise error_of_exception(error) from error
        names = model_names(parse_payload(response.content))
        if not names:
            raise EngineError(ErrorCode.MODEL_UNAVAILABLE, "the model server offers no models")
        return names
