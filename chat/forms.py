"""What people fill in."""

from django import forms
from django.conf import settings
from django.utils.translation import gettext_lazy as _

from chat.models import Membership, Room

ROLES = (
    (Membership.Role.READER, _("Reader: sees everything")),
    (Membership.Role.WRITER, _("Writer: asks and stops too")),
    (Membership.Role.OWNER, _("Owner: decides who is here, and deletes")),
)
TOO_LONG = _("The instructions are too long: at most %(limit)s characters.")


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

    def clean_system_prompt(self) -> str:
        """An older one that is longer stays as it is."""
        text: str = self.cleaned_data["system_prompt"]
        if "system_prompt" in self.changed_data and len(text) > settings.MAX_SYSTEM_PROMPT_CHARACTERS:
            raise forms.ValidationError(TOO_LONG, params={"limit": settings.MAX_SYSTEM_PROMPT_CHARACTERS})
        return text


class RoleForm(forms.Form):
    """What a member may do."""

    role = forms.ChoiceField(label=_("Role"), choices=ROLES)


class NewMemberForm(forms.Form):
    """Somebody to be let into a room."""

    username = forms.CharField(label=_("User name"), max_length=150)
    role = forms.ChoiceField(label=_("Role"), choices=ROLES)
