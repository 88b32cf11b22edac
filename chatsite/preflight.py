"""What does not answer when a worker starts, in a sentence each. It starts all the same: it may come later."""

from __future__ import annotations

from urllib.error import HTTPError
from urllib.request import Request, urlopen

import redis
from django.conf import settings
from redis.backoff import NoBackoff
from redis.retry import Retry

TIMEOUT_SECONDS = 2.0


def complaints() -> list[str]:
    """About Redis and the model server. The database has its own: `manage.py migrate` does not go on without it."""
    return [sentence for sentence in (_redis(), _model_server()) if sentence]


def _redis() -> str:
    # One that sentinels name is left to the worker's log.
    [host] = settings.CHANNEL_LAYERS["default"].get("CONFIG", {}).get("hosts", [{}])
    if "address" not in host:
        return ""
    options = {name: value for name, value in host.items() if name != "address"}
    try:
        with redis.Redis.from_url(host["address"], **options, retry=Retry(NoBackoff(), 0)) as client:
            client.ping()
    except redis.RedisError as error:
        reason = str(error).rstrip(".")
        return f"REDIS_URL: {reason}. Start that Redis, correct the address, or leave it empty for a single process."
    return ""


def _model_server() -> str:
    url = settings.OPENAI_BASE_URL
    if not url:
        return ""
    try:
        status = _status_of(f"{url}/models")
    except OSError as error:
        reason = getattr(error, "reason", error)
        return f"OPENAI_BASE_URL: no answer from {url} ({reason}). Start that server, or correct the address."
    if status in {401, 403}:
        return f"OPENAI_API_KEY: {url} refuses it, with status {status}. Give the key that it wants."
    if status == 404:
        return f"OPENAI_BASE_URL: there is nothing at {url}/models. Most servers want /v1 at the end of the address."
    return ""


def _status_of(url: str) -> int:
    key = settings.OPENAI_API_KEY
    request = Request(url, headers={"Authorization": f"Bearer {key}"} if key else {})  # noqa: S310  # http, by the settings
    try:
        with urlopen(request, timeout=TIMEOUT_SECONDS) as response:  # noqa: S310  # as above
            return int(response.status)
    except HTTPError as error:
        return error.code
