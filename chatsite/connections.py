"""How a process connects to its database and to Redis: options, made of values that the settings have read."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured
from environ import Env

Options = dict[str, Any]

SENTINEL_PORT = 26379
RECONNECT_SECONDS = 1.0
"""How long the pool tries for a connection before somebody has to ask again. It waits twice as long after each failure,
so after an outage it would wait for as long as that has lasted."""
DATABASE_SCHEMES = ("postgres", "postgresql", "psql", "pgsql", "sqlite")
DATABASE_FORMS = "postgres://USER:PASSWORD@HOST:5432/NAME or sqlite:///PATH"
REDIS_FORMS = "redis://, rediss://, redis+sentinel:// or rediss+sentinel://"


def database(url: str, *, timeout_seconds: float, pool_size: int) -> Options:
    """What Django takes for a DATABASE_URL, with what each kind needs under ASGI (ARCHITECTURE.md, Decisions)."""
    config = _parsed(url)
    if config["ENGINE"].endswith("sqlite3"):
        return {**config, "CONN_MAX_AGE": None, "OPTIONS": _sqlite(timeout_seconds)}
    options = {**config.get("OPTIONS", {}), **_postgresql(timeout_seconds, pool_size)}
    # The backend checks what its pool hands out; a check by the pool itself comes to nothing after a restart.
    return {**config, "ENGINE": "chatsite.postgresql", "CONN_MAX_AGE": 0, "OPTIONS": options}


def redis_host(url: str, *, timeout_seconds: float, ca_file: str = "", sentinel_password: str = "") -> Options:
    """What channels_redis takes for a REDIS_URL; with +sentinel that is [USER:PASSWORD@]HOST[:PORT],.../MASTER[/DB].

    `ca_file` holds the certificates that TLS is checked against instead of the system's.
    """
    scheme, _, kind = urlsplit(url).scheme.partition("+")
    if scheme not in {"redis", "rediss"} or kind not in {"", "sentinel"}:
        raise ImproperlyConfigured(f"REDIS_URL must begin with {REDIS_FORMS}.")
    if not kind:
        _address(urlsplit(url).netloc.rpartition("@")[2])
    options: Options = {"socket_timeout": timeout_seconds, "socket_connect_timeout": timeout_seconds}
    if scheme == "rediss" and ca_file:
        options["ssl_ca_certs"] = ca_file
    if not kind:
        return {"address": url, **options}
    if scheme == "rediss":
        options["ssl"] = True
    watchers = {**options, **({"password": sentinel_password} if sentinel_password else {})}
    return {**_sentinel(url), **options, "sentinel_kwargs": watchers}


def _parsed(url: str) -> Options:
    try:
        if url.partition(":")[0] in DATABASE_SCHEMES:
            config: Options = Env.db_url_config(url)
            return config
    except (ValueError, ImproperlyConfigured):
        pass
    # Without the value: there may be a password in it.
    raise ImproperlyConfigured(f"DATABASE_URL must be like {DATABASE_FORMS}.") from None


def _sentinel(url: str) -> Options:
    parts = urlsplit(url)
    account, _, addresses = parts.netloc.rpartition("@")
    username, _, password = account.partition(":")
    master, _, number = parts.path.strip("/").partition("/")
    if not master or not (number or "0").isdigit():
        raise ImproperlyConfigured("REDIS_URL must end with the name of the master: redis+sentinel://HOST,HOST/MASTER")
    given = {"username": unquote(username), "password": unquote(password)}
    return {
        "sentinels": [_address(address) for address in addresses.split(",")],
        "master_name": master,
        "db": int(number or 0),
        **{name: value for name, value in given.items() if value},
    }


def _address(text: str) -> tuple[str, int]:
    parts = urlsplit(f"//{text}")
    try:
        return parts.hostname or "", parts.port or SENTINEL_PORT
    except ValueError:
        raise ImproperlyConfigured(f"REDIS_URL has no port in {text!r}.") from None


def _sqlite(timeout_seconds: float) -> Options:
    return {
        # A read and then a write in one deferred transaction fails at once when another write came between.
        "transaction_mode": "IMMEDIATE",
        "timeout": timeout_seconds,
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
    }


def _postgresql(timeout_seconds: float, pool_size: int) -> Options:
    """A bounded pool, and a bound on every wait."""
    milliseconds = int(timeout_seconds * 1000)
    return {
        "pool": {
            "min_size": 1,
            "max_size": pool_size,
            "timeout": timeout_seconds,
            "reconnect_timeout": RECONNECT_SECONDS,
        },
        "connect_timeout": max(2, int(timeout_seconds)),
        "tcp_user_timeout": milliseconds,
        "options": f"-c statement_timeout={milliseconds} -c lock_timeout={milliseconds}",
    }
