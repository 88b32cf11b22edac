"""What people may do, as a table: each address that takes an id, by whom it is answered; and rows to try it on."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import uuid4

from django.contrib.auth.models import User
from django.db.models import F

from chat.models import ApiToken, Inference, Membership, Message, Room
from chat.tests.people import begin, complete
from inference.journal import Status

MEMBERS = {"owner": True, "writer": True, "reader": True}
WRITERS = {"owner": True, "writer": True}
OWNERS = {"owner": True}
EVERY_ROLE = ("owner", "writer", "reader", "outsider", "anonymous", "deactivated")

Ids = dict[str, str]


@dataclass(frozen=True)
class Verb:
    """A request; names in braces stand for ids."""

    method: str
    path: str
    roles: Mapping[str, bool]
    body: dict[str, Any] = field(default_factory=dict)

    @property
    def is_api(self) -> bool:
        return self.path.startswith("/api/")

    @property
    def ids(self) -> set[str]:
        return set(re.findall(r"{(\w+)}", self.path + json.dumps(self.body)))

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


API = "/api/v1/rooms/{room}"
PAGE = "/rooms/{room}/"
AGAIN = {"message_id": "{message}"}
VERBS = (
    Verb("GET", PAGE, MEMBERS),
    Verb("GET", PAGE + "?at={message}", MEMBERS),
    Verb("GET", PAGE + "earlier/?before={message}", MEMBERS),
    Verb("GET", PAGE + "export.md", MEMBERS),
    Verb("GET", PAGE + "export.json", MEMBERS),
    Verb("GET", PAGE + "members/", MEMBERS),
    Verb("POST", PAGE + "change/", OWNERS, {"title": "Mine"}),
    Verb("POST", PAGE + "delete/", OWNERS),
    Verb("POST", PAGE + "members/add/", OWNERS, {"username": "newcomer", "role": "reader"}),
    Verb("POST", PAGE + "members/{member}/change/", OWNERS, {"role": "writer"}),
    Verb("POST", PAGE + "members/{member}/remove/", OWNERS),
    Verb("POST", "/accounts/tokens/{token}/revoke/", OWNERS),
    Verb("GET", "/api/v1/rooms?after={room}", MEMBERS),
    Verb("GET", API, MEMBERS),
    Verb("PATCH", API, OWNERS, {"title": "Mine"}),
    Verb("DELETE", API, OWNERS),
    Verb("GET", API + "/messages", MEMBERS),
    Verb("GET", API + "/messages?after={message}", MEMBERS),
    Verb("GET", API + "/members", MEMBERS),
    Verb("POST", API + "/members", OWNERS, {"username": "newcomer", "role": "reader"}),
    Verb("PATCH", API + "/members/{member}", OWNERS, {"role": "writer"}),
    Verb("DELETE", API + "/members/{member}", OWNERS),
    Verb("POST", API + "/ask", WRITERS, {"text": "Hi", "parent_id": "{message}"}),
    Verb("POST", API + "/regenerate", WRITERS, AGAIN),
    Verb("POST", API + "/continue", WRITERS, AGAIN),
    Verb("GET", "/api/v1/inference/{inference}", MEMBERS),
    Verb("GET", "/api/v1/inference/{inference}/events", MEMBERS),
    Verb("POST", "/api/v1/inference/stop", WRITERS, {"inference_id": "{inference}", "position": 2}),
)


class World(NamedTuple):
    """People by their role in one room, the ids of what is there, and those of a room that is somebody else's."""

    people: dict[str, User | None]
    secrets: dict[str, str]
    own: Ids
    foreign: Ids


def make_world() -> World:
    """One room with everybody in it, including an owner whose account is closed, and one room of a stranger."""
    people: dict[str, User | None] = {role: _person(role) for role in EVERY_ROLE if role != "anonymous"}
    _person("fellow")
    _person("newcomer")
    secrets = {role: ApiToken.objects.make_for(user, "a program")[1] for role, user in people.items() if user}
    own, foreign = furnish(people), _foreign(_person("stranger"))
    User.objects.filter(username="deactivated").update(is_active=False)
    return World({**people, "anonymous": None}, secrets, own, foreign)


def furnish(people: Mapping[str, User | None]) -> Ids:
    """Another room of the same people, and another token of its owner."""
    owner = people["owner"]
    assert owner is not None
    room = Room.objects.create_for(owner, title="A room")
    for role, user in people.items():
        if user and role in ("writer", "reader", "deactivated"):
            Membership.objects.create(room=room, user=user, role=role.replace("deactivated", "owner"))
    member = Membership.objects.create(room=room, user=User.objects.get(username="fellow"), role="reader")
    token, _secret = ApiToken.objects.make_for(owner, "another program")
    return {**_ids(owner, room), "member": str(member.pk), "token": str(token.pk)}


def unknown_ids() -> Ids:
    """Ids of nothing."""
    uuids = {name: str(uuid4()) for name in ("room", "message", "inference")}
    return {**uuids, "member": "999999999", "token": "999999998"}


def everything() -> dict[str, list[Any]]:
    """All rows that a refused request must leave as they are."""
    return {
        "rooms": list(Room.objects.order_by("pk").values_list("pk", "title", "model", "system_prompt", "updated_at")),
        "members": list(Membership.objects.order_by("pk").values_list("pk", "room", "user", "role")),
        "messages": list(Message.objects.order_by("pk").values_list("pk", "text", "status")),
        "inferences": list(Inference.objects.order_by("pk").values_list("pk", "status", "position", "stopped_by")),
        "tokens": list(ApiToken.objects.order_by("pk").values_list("pk", F("user"))),
    }


def _person(name: str) -> User:
    return User.objects.create_user(name)


def _foreign(stranger: User) -> Ids:
    room = Room.objects.create_for(stranger, title="A room")
    member = Membership.objects.get(room=room)
    token, _secret = ApiToken.objects.make_for(stranger, "a program")
    return {**_ids(stranger, room), "member": str(member.pk), "token": str(token.pk)}


def _ids(user: User, room: Room) -> Ids:
    inference = complete(begin(user, room, "A prompt"), "A reply of some length", status=Status.INTERRUPTED)
    return {"room": str(room.pk), "message": str(inference.message_id), "inference": str(inference.pk)}
