"""What people fill in to get in: name and password, a new account, another password. Guessing is counted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

from asgiref.sync import async_to_sync
from channels.db import database_sync_to_async
from django import forms
from django.conf import settings
from django.contrib.admin.forms import AdminAuthenticationForm
from django.contrib.auth.forms import AuthenticationForm, PasswordChangeForm, PasswordResetForm, UserCreationForm
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.utils import translation
from django.utils.translation import gettext_lazy as _

from chat import attempts, runtime
from chat.attempts import TooManyAttempts


class CountedLogin(AuthenticationForm):
    """A log-in; for the site and, by `CountedAdminLogin`, for the admin."""

    retry_after = 0
    """Whole seconds, when it was refused unseen."""

    def clean(self) -> dict[str, Any]:
        name = self.cleaned_data.get("username")
        if not name:
            return super().clean()
        try:
            attempts.refuse_address(self.request)
            attempts.begin("login", name, settings.LOGIN_FAILURES_PER_ACCOUNT)
            cleaned = super().clean()
        except TooManyAttempts as error:
            self.retry_after = error.retry_after
            raise refusal(error) from None
        except ValidationError:
            attempts.note_failure(self.request)
            raise
        attempts.forget("login", name)
        return cleaned


class CountedAdminLogin(CountedLogin, AdminAuthenticationForm):
    """The same for /admin/. Named by `chat.admin`."""


class SignUpForm(UserCreationForm):  # type: ignore[type-arg]  # generic for the stubs only
    """A name and a password, twice; an address for mail where this site can send any."""

    retry_after = 0
    """Whole seconds, when too many accounts were made from this address."""

    class Meta:
        model = User
        fields = ("username", "email") if settings.IS_EMAIL_ON else ("username",)


class CurrentPasswordForm(forms.Form):
    """The password of whoever is signed in, to see that it is still them."""

    password = forms.CharField(
        label=_("Your password"), strip=False, widget=forms.PasswordInput(attrs={"autocomplete": "current-password"})
    )

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.user = user

    def clean_password(self) -> str:
        return checked_password(self.user, self.cleaned_data["password"])


class EmailForm(CurrentPasswordForm):
    """Where a link for a new password is sent: another address would be another key to the account."""

    field_order = ("email", "password")
    email = forms.EmailField(label=_("E-mail address"), required=False, max_length=254)


class CountedPasswordChange(PasswordChangeForm):
    """A new password for the old one."""

    def clean_old_password(self) -> str:
        return checked_password(self.user, self.cleaned_data["old_password"])


class CountedReset(PasswordResetForm):
    """Asking for a link by mail. The answer is the same, and as fast, whether there is such an account or not."""

    retry_after = 0
    """Whole seconds, when it was refused unseen."""

    def __init__(self, *args: Any, request: HttpRequest, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.request = request

    def clean_email(self) -> str:
        email: str = self.cleaned_data["email"]
        try:
            attempts.begin("reset from", attempts.address_of(self.request), settings.LOGIN_FAILURES_PER_ADDRESS)
            attempts.begin("reset", email, settings.LOGIN_FAILURES_PER_ACCOUNT)
        except TooManyAttempts as error:
            self.retry_after = error.retry_after
            raise refusal(error) from None
        return email

    def save_later(self, **options: Any) -> None:
        """Django's `save`, after the answer."""
        send = partial(self.save, **options)
        async_to_sync(_later)(partial(_in_language, translation.get_language(), send))


def checked_password(user: User, password: str) -> str:
    """The password, if it is theirs. Raises ValidationError.

    Counted apart from log-ins: a stranger's guesses must not keep a person from changing the password.
    """
    try:
        attempts.begin("check", user.get_username(), settings.LOGIN_FAILURES_PER_ACCOUNT)
    except TooManyAttempts as error:
        raise refusal(error) from None
    if not user.check_password(password):
        raise ValidationError(_("That is not your password."), code="wrong")
    attempts.forget("check", user.get_username())
    return password


def refusal(error: TooManyAttempts) -> ValidationError:
    """Says when to try again."""
    minutes = -(-error.retry_after // 60)
    sentence = _("Too many attempts. Try again in %(minutes)d min.")
    return ValidationError(sentence % {"minutes": minutes}, code="too_many")


async def _later(send: Callable[[], None]) -> None:
    # The worker's task: the mail server is slow, and how slow would tell whether there was anybody to write to.
    runtime.current().worker.spawn(_send(send))
    await asyncio.sleep(0)


async def _send(send: Callable[[], None]) -> None:
    await database_sync_to_async(send, thread_sensitive=False)()


def _in_language(language: str | None, send: Callable[[], None]) -> None:
    with translation.override(language):
        send()
