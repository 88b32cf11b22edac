"""All settings. This file alone reads the environment; a bad value stops the start with a sentence that names it."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import django_stubs_ext
import environ
from django.conf.locale import LANG_INFO
from django.core.exceptions import ImproperlyConfigured
from django.utils.translation import to_language

from chatsite import connections, files
from chatsite.logs import logging_of

BASE_DIR = Path(__file__).resolve().parent.parent

# Makes Django's generic classes generic at run time too, as the type checker sees them.
django_stubs_ext.monkeypatch()

env = environ.Env()
env_file = env.str("ENV_FILE", default=".env")
if env_file:
    environ.Env.read_env(BASE_DIR / env_file)


def verbatim(name: str) -> str:
    """Read a secret as it stands: the library takes one that begins with $ for the name of another variable."""
    return str(env.ENVIRON.get(name, ""))


def on_off(name: str, *, default: bool) -> bool:
    """Read a switch; only on and off (and their usual spellings) are taken."""
    value = env.str(name, default="on" if default else "off").strip().lower()
    if value in {"on", "true", "yes", "1"}:
        return True
    if value in {"off", "false", "no", "0", ""}:
        return False
    raise ImproperlyConfigured(f"{name} must be on or off, not {value!r}.")


def number(name: str, default: float, *, low: float = 0) -> float:
    """Read a number that is at least `low`."""
    value = env.str(name, default=str(default))
    try:
        result = float(value)
    except ValueError:
        raise ImproperlyConfigured(f"{name} must be a number, not {value!r}.") from None
    if not low <= result < float("inf"):
        raise ImproperlyConfigured(f"{name} must be at least {low:g}, not {value!r}.")
    return result


def whole(name: str, default: int, *, low: int = 1, high: float = float("inf")) -> int:
    """Read a whole number that is at least `low` and at most `high`."""
    result = number(name, default, low=low)
    if result > high:
        raise ImproperlyConfigured(f"{name} must be at most {high:g}, not {result:g}.")
    if result != int(result):
        raise ImproperlyConfigured(f"{name} must be a whole number, not {result!r}.")
    return int(result)


def choice(name: str, default: str, *, among: tuple[str, ...]) -> str:
    """Read one of a few words, in capitals or not."""
    value = env.str(name, default=default).strip()
    found = next((word for word in among if word.lower() == value.lower()), None)
    if found is None:
        raise ImproperlyConfigured(f"{name} must be one of {', '.join(among)}, not {value!r}.")
    return found


def secret_key() -> str:
    """SECRET_KEY itself, or the one in SECRET_KEY_FILE, which is made when it is missing."""
    if key := verbatim("SECRET_KEY"):
        return key
    key_file = env.str("SECRET_KEY_FILE", default=str(DATA_DIR / "secret_key") if DEBUG else "")
    if not key_file:
        raise ImproperlyConfigured(
            "SECRET_KEY must be set, or SECRET_KEY_FILE (or DEBUG=on, for a try on this machine)."
        )
    return files.kept_secret(Path(key_file))


def address(name: str, default: str = "", *, example: str) -> str:
    """Read the http address of a site or a server; may be empty."""
    value = env.str(name, default="").rstrip("/") or default
    parts = urlsplit(value)
    if value and (parts.scheme not in {"http", "https"} or not parts.hostname):
        raise ImproperlyConfigured(f"{name} must be like {example}, not {value!r}.")
    return value


DEBUG = on_off("DEBUG", default=False)
DATA_DIR = Path(env.str("DATA_DIR", default=str(BASE_DIR / "var")))
SECRET_KEY = secret_key()
LIMITS = on_off("LIMITS", default=True)

# Where the site is. The scheme of PUBLIC_URL decides cookies, HSTS and the redirect to https.
PORT = whole("PORT", 8000, high=65_535)
PUBLIC_URL = address("PUBLIC_URL", example="https://chat.example.org")
_public = urlsplit(PUBLIC_URL)
PUBLIC_HOST = _public.netloc
IS_HTTPS = _public.scheme == "https"
PROXY_COUNT = whole("PROXY_COUNT", 1 if IS_HTTPS else 0, low=0)
"""Proxies before this process that each add to X-Forwarded-For whom they were asked by."""
_public_hosts = [_public.hostname] if _public.hostname else []
# This machine always: the health checks of Compose and Kubernetes ask for it.
ALLOWED_HOSTS = [*env.list("ALLOWED_HOSTS", default=_public_hosts), "localhost", "127.0.0.1", "[::1]"]
CSRF_TRUSTED_ORIGINS = [PUBLIC_URL] if PUBLIC_URL else []
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = IS_HTTPS
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
SECURE_SSL_REDIRECT = IS_HTTPS
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$"]
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if IS_HTTPS else None
SECURE_HSTS_SECONDS = 31_536_000 if IS_HTTPS else 0
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
# HSTS for subdomains and for browsers' own lists binds other sites of the same domain: its owner's to decide, not ours.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]

INSTALLED_APPS = [
    "chat",
    "chatsite",
    "daphne",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "servestatic.runserver_nostatic",
    "django.contrib.staticfiles",
    "ninja",
]
MIDDLEWARE = [
    "chatsite.csp.content_security_policy",
    "chatsite.outages.Outages",
    "django.middleware.security.SecurityMiddleware",
    "servestatic.middleware.ServeStaticMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
ROOT_URLCONF = "chatsite.urls"
ASGI_APPLICATION = "chatsite.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "chat.pages.context.about_site",
            ]
        },
    }
]

# Rows.
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
DATABASE_TIMEOUT_SECONDS = number("DATABASE_TIMEOUT_SECONDS", 5, low=0.1)
DATABASE_THREADS = whole("DATABASE_THREADS", 4)
"""Threads, and so connections, that consumers and the journal of one worker use; HTTP requests come on top."""
DATABASE_POOL_SIZE = whole("DATABASE_POOL_SIZE", DATABASE_THREADS + 8, low=DATABASE_THREADS + 2)
files.made_folder(DATA_DIR, setting="DATA_DIR")
DATABASES = {
    "default": connections.database(
        env.str("DATABASE_URL", default="") or f"sqlite:///{DATA_DIR / 'chatsite.sqlite3'}",
        timeout_seconds=DATABASE_TIMEOUT_SECONDS,
        pool_size=DATABASE_POOL_SIZE,
    )
}

# The channel layer. Without Redis there is one process.
REDIS_URL = env.str("REDIS_URL", default="")
REDIS_TIMEOUT_SECONDS = number("REDIS_TIMEOUT_SECONDS", 2, low=0.1)
CHANNEL_LAYERS: dict[str, Any] = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}
if REDIS_URL:
    _redis = connections.redis_host(
        REDIS_URL,
        timeout_seconds=REDIS_TIMEOUT_SECONDS,
        ca_file=env.str("REDIS_CA_FILE", default=""),
        sentinel_password=verbatim("REDIS_SENTINEL_PASSWORD"),
    )
    CHANNEL_LAYERS["default"] = {
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        "CONFIG": {"hosts": [_redis], "prefix": env.str("REDIS_PREFIX", default="chatsite")},
    }

# The model server. Without an address or a key the demo model answers.
OPENAI_API_KEY = verbatim("OPENAI_API_KEY")
OPENAI_BASE_URL = address(
    "OPENAI_BASE_URL", "https://api.openai.com/v1" if OPENAI_API_KEY else "", example="http://127.0.0.1:11434/v1"
)
CHAT_MODELS: list[str] = env.list("CHAT_MODELS", default=[])
CHAT_DEFAULT_MODEL = env.str("CHAT_DEFAULT_MODEL", default="")
MODEL_CONNECT_TIMEOUT_SECONDS = number("MODEL_CONNECT_TIMEOUT_SECONDS", 5, low=0.1)
MODEL_FIRST_CHUNK_TIMEOUT_SECONDS = number("MODEL_FIRST_CHUNK_TIMEOUT_SECONDS", 120, low=0.1)
MODEL_IDLE_TIMEOUT_SECONDS = number("MODEL_IDLE_TIMEOUT_SECONDS", 60, low=0.1)
MODEL_MAX_CONNECTIONS = whole("MODEL_MAX_CONNECTIONS", 2000)
DEMO_CHUNK_SECONDS = number("DEMO_CHUNK_SECONDS", 0.125)

# Limits.
MAX_PROMPT_CHARACTERS = whole("MAX_PROMPT_CHARACTERS", 32_000)
MAX_SYSTEM_PROMPT_CHARACTERS = whole("MAX_SYSTEM_PROMPT_CHARACTERS", 16_000)
MAX_HISTORY_CHARACTERS = whole("MAX_HISTORY_CHARACTERS", 200_000)
MAX_REPLY_CHARACTERS = whole("MAX_REPLY_CHARACTERS", 200_000)
MAX_REPLY_SECONDS = number("MAX_REPLY_SECONDS", 900, low=0.1)
MAX_LIVE = whole("MAX_LIVE", 1000)
MAX_LIVE_PER_PERSON = whole("MAX_LIVE_PER_PERSON", 20)
MAX_ROOMS_PER_PERSON = whole("MAX_ROOMS_PER_PERSON", 1000)
MAX_SOCKETS_PER_PERSON = whole("MAX_SOCKETS_PER_PERSON", 50)
PROMPTS_PER_MINUTE = whole("PROMPTS_PER_MINUTE", 60)
REPEATED_STOPS_PER_MINUTE = whole("REPEATED_STOPS_PER_MINUTE", 60)
MAX_MEMBERS_PER_ROOM = whole("MAX_MEMBERS_PER_ROOM", 100)
DRAIN_SECONDS = number("DRAIN_SECONDS", 30)

# Accounts.
SIGNUP = choice("SIGNUP", "open", among=("open", "invite", "closed"))
SIGNUPS_PER_HOUR = whole("SIGNUPS_PER_HOUR", 100)
"""From one address, while SIGNUP is open."""
LOGIN_FAILURES_PER_ACCOUNT = whole("LOGIN_FAILURES_PER_ACCOUNT", 10)
LOGIN_FAILURES_PER_ADDRESS = whole("LOGIN_FAILURES_PER_ADDRESS", 100)
"""The last two within 15 minutes (`chat.models.attempt.WINDOW`)."""
PASSWORD_RESET_TIMEOUT = 3600
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "room_list"
LOGOUT_REDIRECT_URL = "login"

# Whoever asks for /metrics brings this token; without one there is no /metrics.
METRICS_TOKEN = verbatim("METRICS_TOKEN")

# Mail, which only new passwords need. Without a server people are told to ask whoever runs the site.
_email_url = env.str("EMAIL_URL", default="consolemail://" if DEBUG else "")
IS_EMAIL_ON = bool(_email_url)
globals().update(environ.Env.email_url_config(_email_url or "dummymail://"))
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = env.str("EMAIL_FROM", default=f"chatsite@{_public.hostname or 'localhost'}")

LANGUAGE_CODE = "en"
LOCALE_PATHS = [BASE_DIR / "locale"]


def languages() -> list[tuple[str, str]]:
    """English, in which the texts are written, and every language that has a folder in locale/, by its own name."""
    codes = [to_language(folder.name) for folder in sorted(LOCALE_PATHS[0].glob("[!.]*")) if folder.is_dir()]
    return [(code, LANG_INFO[code]["name_local"]) for code in ["en", *codes]]


LANGUAGES = languages()
TIME_ZONE = "UTC"
USE_TZ = True

STATIC_URL = "static/"
STATIC_ROOT = Path(env.str("STATIC_ROOT", default=str(BASE_DIR / "staticfiles")))
STATICFILES_DIRS = [BASE_DIR / "static"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "chatsite.staticfiles.ModuleManifestStorage"},
}
SERVESTATIC_USE_FINDERS = DEBUG or not STATIC_ROOT.exists()

# Logs, on stderr.
LOGGING = logging_of(
    form=choice("LOG_FORMAT", "text", among=("text", "json")),
    level=choice("LOG_LEVEL", "INFO", among=("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")),
)
