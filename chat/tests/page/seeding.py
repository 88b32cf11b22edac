"""Rooms and messages in numbers that nobody types, written into a site's database past the site."""

from __future__ import annotations

import psycopg

ROOMS = """
WITH made AS (
    INSERT INTO chat_room (id, title, model, system_prompt, created_at, updated_at)
    SELECT gen_random_uuid(), 'Room number ' || n, '', '', now(), now() - n * interval '3 hours'
    FROM generate_series(1, %(count)s) AS n RETURNING id
)
INSERT INTO chat_membership (room_id, user_id, role)
SELECT made.id, auth_user.id, 'owner' FROM made, auth_user WHERE username = %(username)s
"""
MESSAGES = """
INSERT INTO chat_message (id, room_id, parent_id, author_id, role, text, status, created_at)
    SELECT md5(%(room)s || n)::uuid, %(room)s::uuid, CASE WHEN n > 1 THEN md5(%(room)s || (n - 1))::uuid END,
        CASE n %% 2 WHEN 1 THEN (SELECT user_id FROM chat_membership WHERE room_id = %(room)s::uuid LIMIT 1) END,
        CASE n %% 2 WHEN 1 THEN 'user' ELSE 'assistant' END, CASE n %% 2 WHEN 1 THEN 'Prompt ' || n ELSE %(reply)s END,
        CASE n %% 2 WHEN 1 THEN 'sent' ELSE 'completed' END, now() - (%(count)s - n) * interval '1 minute'
    FROM generate_series(1, %(count)s) AS n
"""
INFERENCES = """
INSERT INTO chat_inference (id, room_id, message_id, model, status, finish_reason, parts, position, kept, worker,
    started_at, heartbeat_at, finished_at, stop_source, generated_position, chunk_count, error_code)
    SELECT gen_random_uuid(), room_id, id, 'page', status, 'stop',
        jsonb_build_array(jsonb_build_array('content', text)), length(text), 0,
        gen_random_uuid(), created_at, created_at, created_at, '', length(text), 9, ''
    FROM chat_message WHERE room_id = %(room)s::uuid AND role = 'assistant'
"""
MEMBER = """
INSERT INTO chat_membership (room_id, user_id, role)
SELECT %(room)s::uuid, id, %(role)s FROM auth_user WHERE username = %(username)s
"""


def add_member(database_url: str, room_id: str, username: str, role: str) -> None:
    """Somebody comes into a room, as nobody is told."""
    with psycopg.connect(database_url) as connection:
        connection.execute(MEMBER, {"room": room_id, "username": username, "role": role})


def add_rooms(database_url: str, username: str, count: int) -> None:
    """Rooms of this person, three hours apart."""
    with psycopg.connect(database_url) as connection:
        connection.execute(ROOMS, {"username": username, "count": count})


def add_messages(database_url: str, room_id: str, count: int, *, reply: str) -> None:
    """Prompts of the room's owner and replies by turns, all on one path."""
    values = {"room": room_id, "count": count, "reply": reply}
    with psycopg.connect(database_url) as connection:
        connection.execute(MESSAGES, values)
        connection.execute(INFERENCES, values)
