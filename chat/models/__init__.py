"""The rows (DESIGN section 4)."""

from chat.models.attempt import Attempt
from chat.models.inference import Inference
from chat.models.invitation import Invitation
from chat.models.message import Message
from chat.models.room import Membership, Room
from chat.models.token import ApiToken

__all__ = ["ApiToken", "Attempt", "Inference", "Invitation", "Membership", "Message", "Room"]
