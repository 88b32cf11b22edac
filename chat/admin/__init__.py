"""The admin: rooms, and the review of replies that were stopped: which, by whom, from where and when.

Django finds this package by its name; importing its modules registers what they show.
"""

from chat.admin import inferences, messages, rooms, tokens

__all__ = ["inferences", "messages", "rooms", "tokens"]
