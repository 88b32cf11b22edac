"""The admin: rooms, and the review of replies that were stopped: which, by whom, from where and when.

Django finds this package by its name; importing its modules registers what they show.
"""

from django.contrib import admin

from chat.admin import inferences, invitations, messages, rooms, tokens
from chat.pages.account_forms import CountedAdminLogin

__all__ = ["inferences", "invitations", "messages", "rooms", "tokens"]

# Guesses are counted here as on the site's own page.
admin.site.login_form = CountedAdminLogin
