"""Signing up, logging in, and the account itself: its address, its password, where it is signed in."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login, logout
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.contrib.auth.views import LoginView, PasswordChangeView, PasswordResetConfirmView, PasswordResetView
from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse_lazy
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST
from django.views.generic.edit import FormView

from chat import attempts
from chat.access import person
from chat.attempts import TooManyAttempts
from chat.models import ApiToken, Invitation
from chat.pages.account_forms import (
    CountedLogin,
    CountedPasswordChange,
    CountedReset,
    CurrentPasswordForm,
    EmailForm,
    SignUpForm,
    refusal,
)


class SaysWhen(FormView[Any]):
    """Answers 429 when a form was refused for now: its `retry_after` says for how long."""

    def form_invalid(self, form: Any) -> HttpResponse:
        response = super().form_invalid(form)
        if form.retry_after:
            response.status_code = 429
            response.headers["Retry-After"] = str(form.retry_after)
        return response


class SignUp(SaysWhen):
    """Make an account and sign in, if SIGNUP lets everybody, or by an invitation."""

    template_name = "accounts/signup.html"
    form_class = SignUpForm
    success_url = reverse_lazy("room_list")

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        if settings.SIGNUP == "open" or (settings.SIGNUP == "invite" and self._is_invited()):
            return super().dispatch(request, *args, **kwargs)
        context = {"is_by_invitation": settings.SIGNUP == "invite", "had_invitation": bool(kwargs)}
        return render(request, "accounts/signup_closed.html", context, status=403)

    def form_valid(self, form: SignUpForm) -> HttpResponse:
        try:
            user = self._make(form)
        except TooManyAttempts as error:
            form.retry_after = error.retry_after
            form.add_error(None, refusal(error))
            return self.form_invalid(form)
        except IntegrityError:
            # Somebody else was first with the same name; a form that looks again says so.
            return self.form_invalid(self.get_form())
        if user is None:
            return redirect(self.request.path)
        login(self.request, user)
        return super().form_valid(form)

    def _make(self, form: SignUpForm) -> User | None:
        """None when somebody else was first with the same invitation."""
        if settings.SIGNUP == "open":
            # Not by invitation: whoever makes those has counted them.
            attempts.begin_sign_up(self.request)
        with transaction.atomic():
            user: User = form.save()
            if settings.SIGNUP == "invite" and not Invitation.objects.use(self.kwargs["secret"], user):
                transaction.set_rollback(True)
                return None
        return user

    def _is_invited(self) -> bool:
        return Invitation.objects.is_open(self.kwargs.get("secret", ""))


class LogIn(SaysWhen, LoginView):
    """By name and password."""

    authentication_form = CountedLogin
    redirect_authenticated_user = True


@login_required
@never_cache
def account(request: HttpRequest) -> HttpResponse:
    """The person's own page."""
    form = EmailForm(person(request), initial={"email": person(request).email})
    return render(request, "accounts/account.html", {"form": form})


@login_required
@require_POST
def change_email(request: HttpRequest) -> HttpResponse:
    """Another address for mail."""
    form = EmailForm(person(request), request.POST)
    if not form.is_valid():
        return render(request, "accounts/account.html", {"form": form})
    User.objects.filter(pk=person(request).pk).update(email=form.cleaned_data["email"])
    messages.success(request, _("Saved."))
    return redirect("account")


class ChangePassword(PasswordChangeView):
    """A new password signs out all other browsers: their sessions hold a hash of the old one."""

    template_name = "accounts/password_change.html"
    form_class = CountedPasswordChange
    success_url = reverse_lazy("account")

    def form_valid(self, form: Any) -> HttpResponse:
        messages.success(self.request, _("Your password is changed. Other browsers are signed out."))
        return super().form_valid(form)


@login_required
@never_cache
@require_http_methods(["GET", "POST"])
def sign_out_everywhere(request: HttpRequest) -> HttpResponse:
    """End all sessions and revoke all tokens, for whoever fears that somebody else has one."""
    form = CurrentPasswordForm(person(request), request.POST or None)
    if request.method == "GET" or not form.is_valid():
        return render(request, "accounts/sign_out_everywhere.html", {"form": form})
    _end_everything(person(request), form.cleaned_data["password"])
    logout(request)
    messages.success(request, _("You are signed out everywhere, and your tokens are revoked."))
    return redirect("login")


class AskForReset(SaysWhen, PasswordResetView):
    """A link by mail, where this site can send any; otherwise the page says whom to ask."""

    template_name = "accounts/password_reset.html"
    email_template_name = "accounts/password_reset_email.txt"
    subject_template_name = "accounts/password_reset_subject.txt"
    form_class = CountedReset

    def get_form_kwargs(self) -> dict[str, Any]:
        return {**super().get_form_kwargs(), "request": self.request}

    def form_valid(self, form: Any) -> HttpResponse:
        if settings.IS_EMAIL_ON:
            form.save_later(
                subject_template_name=self.subject_template_name,
                email_template_name=self.email_template_name,
                domain_override=settings.PUBLIC_HOST or self.request.get_host(),
                use_https=settings.IS_HTTPS or self.request.is_secure(),
            )
        messages.success(self.request, _("If an account has this address, a link is on its way to it."))
        return redirect("login")


class Reset(PasswordResetConfirmView):
    """A new password by the link; it also lifts the limit that wrong guesses have put on the account."""

    template_name = "accounts/password_reset_confirm.html"
    success_url = reverse_lazy("login")

    def form_valid(self, form: Any) -> HttpResponse:
        attempts.forget("login", form.user.get_username())
        messages.success(self.request, _("Your password is changed. Log in with it."))
        return super().form_valid(form)


@transaction.atomic
def _end_everything(user: User, password: str) -> None:
    # The same password with a new salt: sessions hold a hash of the stored one, so all of them end, with no list kept.
    user.set_password(password)
    user.save(update_fields=["password"])
    ApiToken.objects.of(user).delete()
