"""What every template may use. Named by settings.TEMPLATES."""

from django.conf import settings
from django.http import HttpRequest
from django.utils.translation import gettext as _

THEMES = ("", "light", "dark")


def about_site(request: HttpRequest) -> dict[str, str | int]:
    """The theme of this browser, which model answers if it is a demo, how long texts may be, how people get in."""
    chosen = request.COOKIES.get("theme", "")
    is_demo = not settings.OPENAI_BASE_URL
    return {
        "signup": settings.SIGNUP,
        "is_email_on": settings.IS_EMAIL_ON,
        "theme": chosen if chosen in THEMES else "",
        "max_prompt_characters": settings.MAX_PROMPT_CHARACTERS,
        "max_system_prompt_characters": settings.MAX_SYSTEM_PROMPT_CHARACTERS,
        "models_note": _("Demo model, connect a real one with OPENAI_BASE_URL") if is_demo else "",
    }
