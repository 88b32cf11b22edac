"""Signing up, and what a browser remembers of its person."""

from __future__ import annotations

from django.contrib.auth import login
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse, reverse_lazy
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST
from django.views.generic.edit import FormView

from chat.forms import SignUpForm
from chat.pages.context import THEMES

YEAR_SECONDS = 31_536_000


class SignUp(FormView[SignUpForm]):
    """Make an account and sign in."""

    template_name = "accounts/signup.html"
    form_class = SignUpForm
    success_url = reverse_lazy("room_list")

    def form_valid(self, form: SignUpForm) -> HttpResponse:
        login(self.request, form.save())
        return super().form_valid(form)


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
