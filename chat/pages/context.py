"""What every template may use. Named by settings.TEMPLATES."""

from django.conf import settings
from django.http import HttpRequest
from django.utils.translation import gettext as _

THEMES = ("", "light", "dark")


def theme_and_models(request: HttpRequest) -> dict[str, str]:
    """The theme of this browser, and which model answers if it is the demo model."""
    chosen = request.COOKIES.get("theme", "")
    is_demo = not settings.OPENAI_BASE_URL
    return {
        "theme": chosen if chosen in THEMES else "",
        "models_note": _("Demo model, connect a real one with OPENAI_BASE_URL") if is_demo else "",
    }
