"""The rows (DESIGN section 4)."""

from chat.models.inference import Inference
from chat.models.message import Message
from chat.models.room import Membership, Room
from chat.models.token import ApiToken

__all__ = ["ApiToken", "Inference", "Membership", "Message", "Room"]
