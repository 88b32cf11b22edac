"""As many rows as a busy site has after a while, made by the database itself within seconds."""

from __future__ import annotations

from django.db import connection

_SEED = """
INSERT INTO auth_user (id, username, password, first_name, last_name, email, is_superuser, is_staff, is_active,
    date_joined)
    SELECT 1000000 + n, 'person' || n, '!', '', '', '', false, false, true, now() FROM generate_series(1, 50) AS n;
INSERT INTO chat_room (id, title, model, system_prompt, created_at, updated_at)
    SELECT md5('room' || n)::uuid, 'Room ' || n, '', '', now(), now() FROM generate_series(1, 1000) AS n;
INSERT INTO chat_message (id, room_id, role, author_id, text, status, created_at)
    SELECT md5('prompt' || n)::uuid, md5('room' || n %% 1000 + 1)::uuid, 'user', 1000000 + n %% 50 + 1,
        repeat(md5(n::text), 10), 'sent', now() - n * interval '30 seconds'
    FROM generate_series(1, %(replies)s) AS n;
INSERT INTO chat_message (id, room_id, parent_id, role, text, status, created_at)
    SELECT md5('reply' || n)::uuid, md5('room' || n %% 1000 + 1)::uuid, md5('prompt' || n)::uuid, 'assistant',
        (SELECT string_agg(md5(n::text || k), ' ') FROM generate_series(1, 45) AS k),
        CASE n %% 20 WHEN 0 THEN 'stopped' ELSE 'completed' END, now() - n * interval '30 seconds'
    FROM generate_series(1, %(replies)s) AS n;
INSERT INTO chat_inference (id, room_id, message_id, model, status, finish_reason, parts, position, kept, worker,
    started_at, first_chunk_at, heartbeat_at, finished_at, stop_requested_at, stopped_by_id, stop_source,
    stop_position, generated_position, chunk_count, error_code)
    SELECT md5('inference' || n)::uuid, room_id, id, 'model-' || n %% 5, status, 'stop',
        jsonb_build_array(jsonb_build_array('content', text)), length(text), 0, md5('worker')::uuid,
        created_at, created_at + interval '0.5 seconds', created_at, created_at + interval '9 seconds',
        CASE status WHEN 'stopped' THEN created_at + interval '8.9 seconds' END,
        CASE status WHEN 'stopped' THEN 1000001 + n %% 50 END,
        CASE status WHEN 'stopped' THEN 'page' ELSE '' END, NULL, length(text), 80, ''
    FROM (SELECT *, row_number() OVER () AS n FROM chat_message WHERE role = 'assistant') AS replies;
ANALYZE;
"""


def make_replies(count: int) -> None:
    """So many prompts with their replies, in a thousand rooms of fifty people; every twentieth is stopped."""
    with connection.cursor() as cursor:
        # The site's bound on every statement is not meant for this, nor for the check of its foreign keys at the end.
        cursor.execute("SET statement_timeout = 0")
        cursor.execute(_SEED % {"replies": count})
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("RESET statement_timeout")
