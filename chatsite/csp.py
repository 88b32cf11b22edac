"""The Content-Security-Policy of every page, and a looser one for the admin. Named by settings.MIDDLEWARE."""

from collections.abc import Awaitable, Callable

from django.http import HttpRequest, HttpResponse
from django.utils.decorators import async_only_middleware

PAGES = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; manifest-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types chat"
)
ADMIN = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)


@async_only_middleware
def content_security_policy(
    get_response: Callable[[HttpRequest], Awaitable[HttpResponse]],
) -> Callable[[HttpRequest], Awaitable[HttpResponse]]:
    """Add the header that fits the path."""

    async def add_header(request: HttpRequest) -> HttpResponse:
        response = await get_response(request)
        response.headers.setdefault("Content-Security-Policy", ADMIN if request.path.startswith("/admin/") else PAGES)
        return response

    return add_header
