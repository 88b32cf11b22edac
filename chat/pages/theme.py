"""What a browser remembers of its person."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

from chat.pages.context import THEMES

YEAR_SECONDS = 31_536_000


@require_POST
def theme(request: HttpRequest) -> HttpResponse:
    """Remember light, dark or the system's own theme in a cookie, and go back to where the person was."""
    wanted = request.POST.get("theme", "")
    back = request.POST.get("next", "")
    if not url_has_allowed_host_and_scheme(back, {request.get_host()}):
        back = reverse("room_list")
    response = HttpResponseRedirect(back)
    response.set_cookie("theme", wanted if wanted in THEMES else "", max_age=YEAR_SECONDS, samesite="Lax")
    return response
