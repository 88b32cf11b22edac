"""What people fill in."""

from django import forms
from django.contrib.auth.forms import UserCreationForm

from chat.models import Room


class SignUpForm(UserCreationForm):  # type: ignore[type-arg]  # generic for the stubs only
    """A name and a password, twice."""


class RoomForm(forms.ModelForm[Room]):
    """A new room; it may come without a title, and then takes that of its first prompt."""

    class Meta:
        model = Room
        fields = ("title",)


class RoomSettingsForm(forms.ModelForm[Room]):
    """What the owner of a room can change in it."""

    class Meta:
        model = Room
        fields = ("title", "model", "system_prompt")
