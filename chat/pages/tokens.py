"""The page on which people make and revoke their tokens for the HTTP API."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from chat.access import person
from chat.models import ApiToken

MAX_TOKENS = 20
"""Of one person."""


class TokenForm(forms.ModelForm):  # type: ignore[type-arg]  # generic for the stubs only
    """What the token is for."""

    class Meta:
        model = ApiToken
        fields = ("name",)


@login_required
@never_cache
@require_http_methods(["GET", "POST"])
def tokens(request: HttpRequest) -> HttpResponse:
    """The person's tokens; POST makes one, whose secret is on the page that answers and nowhere else."""
    form = TokenForm(request.POST or None)
    secret = ""
    if request.method == "POST" and form.is_valid():
        secret, form = _make(person(request), form)
    context = {"tokens": ApiToken.objects.of(person(request)), "form": form, "secret": secret}
    return render(request, "accounts/tokens.html", context, status=200 if secret or not form.errors else 400)


@login_required
@require_POST
def revoke_token(request: HttpRequest, token_id: int) -> HttpResponse:
    """Delete a token; requests with it are refused from now on."""
    get_object_or_404(ApiToken.objects.of(person(request)), pk=token_id).delete()
    return redirect("tokens")


def _make(user: User, form: Any) -> tuple[str, Any]:
    if ApiToken.objects.of(user).count() >= MAX_TOKENS:
        form.add_error(None, _("You have %(count)d tokens. Revoke one first.") % {"count": MAX_TOKENS})
        return "", form
    _token, secret = ApiToken.objects.make_for(user, form.cleaned_data["name"])
    return secret, TokenForm()
