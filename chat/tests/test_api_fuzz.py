"""Requests made up from the API's own schema, right, nearly right and wrong, are never answered by a fault of ours."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote
from uuid import UUID

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chat.tests.program import make_token
from testing.services import PostgresServer
from testing.workers import Site

pytestmark = pytest.mark.processes

EXAMPLES = 30
"""For each operation."""
SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]
Schema = dict[str, Any]
Values = st.SearchStrategy[Any]

TEXTS = st.text(max_size=30) | st.sampled_from(["", " ", "\0", "a table", "long", "thinking", "é\u0301", "x" * 40_000])
JUNK: Values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS | st.sampled_from(["\ud800", 2**63, -1, 1.5]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=5,
)


@dataclass
class Api:
    """The API of a running site, ids of one conversation there, and with which statuses each operation has answered."""

    http: httpx.Client
    schema: Schema
    ids: dict[str, str] = field(default_factory=dict)
    answered: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))

    @property
    def operations(self) -> list[tuple[str, str, Schema]]:
        paths = self.schema["paths"].items()
        return [(method, path, each) for path, methods in paths for method, each in methods.items()]

    def converse(self) -> None:
        """Make a room with a prompt, its reply and a member, for requests that mean something."""
        room_id = self.http.post("/api/v1/rooms", json={"title": "A room"}).json()["id"]
        reply = self.http.post(f"/api/v1/rooms/{room_id}/ask", json={"text": "Hello"}).json()["reply"]
        member = self.http.post(f"/api/v1/rooms/{room_id}/members", json={"username": "bob"}).json()
        self.ids = {"room_id": room_id, "message_id": reply["id"], "inference_id": reply["inference_id"]}
        self.ids["member_id"] = str(member["id"])

    def values(self, schema: Schema, name: str = "") -> Values:
        """What the schema allows for a field of this name."""
        if "$ref" in schema:
            return self.values(self.schema["components"]["schemas"][schema["$ref"].rpartition("/")[2]])
        if "anyOf" in schema:
            return st.one_of([self.values(each, name) for each in schema["anyOf"]])
        if "enum" in schema:
            return st.sampled_from(schema["enum"])
        if name == "member_id" or schema.get("format") == "uuid":
            # By number: what is drawn must not depend on what the site has answered.
            return st.integers(0, 9).map(lambda number: self._id(name, number))
        if name == "username":
            return st.sampled_from(["charlie", "bob"]) | TEXTS.filter(lambda text: len(text) <= schema["maxLength"])
        return self._values_of_type(schema, name)

    def _values_of_type(self, schema: Schema, name: str) -> Values:
        if schema["type"] == "object":
            required = set(schema.get("required", ()))
            known = {name: self.values(each, name) for name, each in schema["properties"].items()}
            return st.fixed_dictionaries(
                {name: each for name, each in known.items() if name in required},
                optional={name: each for name, each in known.items() if name not in required},
            )
        return self._plain_values(schema, name)

    def _plain_values(self, schema: Schema, name: str) -> Values:
        match schema["type"]:
            case "string":
                return TEXTS.filter(lambda text: len(text) <= schema.get("maxLength", 50_000))
            case "integer":
                return st.integers(schema.get("minimum"), schema.get("maximum"))
            case "boolean":
                return st.booleans()
        return st.none()

    def _id(self, name: str, number: int) -> str:
        kinds = {"parent_id": "message_id", "after": ("room_id", "message_id")[number % 2]}
        known = self.ids.get(kinds.get(name, name))
        return known if known and number < 8 else str(UUID(int=number))


@pytest.fixture(scope="module")
def api(postgres_server: PostgresServer) -> Iterator[Api]:
    variables = {"DEMO_CHUNK_SECONDS": "0", "LIMITS": "off", "DATABASE_TIMEOUT_SECONDS": "30"}
    with postgres_server.new_database() as database_url, Site(1, database_url=database_url, **variables) as site:
        account = site.account("alice")
        for name_of_other in ("bob", "charlie"):
            site.account(name_of_other)
        headers = {"Authorization": f"Bearer {make_token(account)}"}
        with httpx.Client(base_url=site.url, headers=headers, timeout=60, trust_env=False) as http:
            found = Api(http, http.get("/api/v1/openapi.json").json())
            found.converse()
            yield found


def body_of(api: Api, operation: Schema, draw: st.DataObject) -> bytes | None:
    """A body as the schema has it, the same with one wrong field, something else, or what is not JSON at all."""
    if "requestBody" not in operation:
        return None
    right = draw.draw(api.values(operation["requestBody"]["content"]["application/json"]["schema"]))
    match draw.draw(st.sampled_from(["right", "right", "right", "nearly", "junk", "bytes"])):
        case "right":
            return json.dumps(right).encode()
        case "nearly":
            name = draw.draw(st.sampled_from([*right, "extra"]))
            return json.dumps({**right, name: draw.draw(JUNK)}).encode()
        case "junk":
            return json.dumps(draw.draw(JUNK)).encode()
    return draw.draw(st.binary(max_size=30))


def address_of(api: Api, path: str, operation: Schema, draw: st.DataObject) -> tuple[str, dict[str, str]]:
    query: dict[str, str] = {}
    wild = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=10)
    for parameter in operation.get("parameters", ()):
        values = api.values(parameter["schema"], parameter["name"])
        value = str(draw.draw(values if draw.draw(st.integers(0, 4)) else wild))
        if parameter["in"] == "path":
            path = path.replace(f"{{{parameter['name']}}}", quote(value, safe=""))
        elif parameter["in"] == "query" and draw.draw(st.booleans()) and value != "None":
            query[parameter["name"]] = value
    return path, query


def check(response: httpx.Response, operation: Schema) -> None:
    status = response.status_code
    if response.headers.get("content-type", "").startswith("text/event-stream"):
        assert status == 200
        return
    response.read()
    assert status < 500, response.text
    assert str(status) in operation["responses"] or status == 405, (status, response.text)
    if status == 204:
        return
    answer = response.json()
    if status >= 400 and "outcome" not in answer:
        assert set(answer) == {"error"}
        assert set(answer["error"]) == {"code", "detail"}


def send(api: Api, draw: st.DataObject, *, method: str, path: str, operation: Schema) -> None:
    address, query = address_of(api, path, operation, draw)
    body = body_of(api, operation, draw)
    headers = {"Content-Type": "application/json"}
    with api.http.stream(method, address, params=query, content=body, headers=headers) as response:
        check(response, operation)
    api.answered[f"{method} {path}"].add(response.status_code)
    if response.status_code == 204:
        api.converse()


def test_no_request_leads_to_a_fault(api: Api) -> None:
    """And each operation has been reached with what it takes and with what it refuses."""

    @settings(max_examples=EXAMPLES, deadline=None, derandomize=True, database=None, suppress_health_check=SLOW)
    @given(draw=st.data())
    def make_up_requests(draw: st.DataObject, number: int) -> None:
        method, path, operation = api.operations[number]
        send(api, draw, method=method, path=path, operation=operation)

    for number in range(len(api.operations)):
        make_up_requests(number=number)
    names = {f"{method} {path}" for method, path, _ in api.operations}
    assert len(names) == 16
    assert {name for name in names if min(api.answered[name], default=999) < 300} == names
    assert {name for name in names if max(api.answered[name], default=0) >= 400} == names
