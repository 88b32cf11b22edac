"""Heartbeats and checkpoints write many rows at once, beside each other and beside those who end one of them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction

from chat.models import Inference, Room
from chat.tests.people import begin


@pytest.mark.django_db(transaction=True)
def test_a_heartbeat_does_not_wait_for_a_row_that_is_being_saved(alice: User, room: Room) -> None:
    inference_id = begin(alice, room).pk

    def beat() -> str:
        try:
            with connection.cursor() as cursor:
                cursor.execute("SET lock_timeout = 1000")
            Inference.objects.filter(pk=inference_id).beat()
            return "went by"
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as thread, transaction.atomic():
        Inference.objects.select_for_update().get(pk=inference_id)
        assert thread.submit(beat).result() == "went by"
