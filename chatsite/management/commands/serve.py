"""Start this process as a worker: daphne on uvloop, with the address printed when it listens."""

from __future__ import annotations

import socket
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import connections

from chatsite.preflight import complaints


class Command(BaseCommand):
    help = "Serve the site (daphne on uvloop)."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
        parser.add_argument("--migrate", action="store_true", help="bring the database up to date first")
        parser.add_argument("--port", type=int, default=settings.PORT, help="port to listen on")

    def handle(self, *args: Any, **options: Any) -> None:
        host, port = options["host"], options["port"]
        _refuse_port_in_use(host, port)
        if options["migrate"]:
            # Safe beside other workers that start at the same time: one migrates, the others wait.
            call_command("migrate", verbosity=0)
            connections.close_all()
        for complaint in complaints():
            self.stderr.write(complaint)
        _install_uvloop()
        from daphne.endpoints import build_endpoint_description_strings
        from daphne.server import Server

        from chatsite.asgi import application

        server = Server(
            application=application,
            endpoints=build_endpoint_description_strings(host=host, port=port),
            ready_callable=lambda: self.stdout.write(f"Chatsite is at http://{host}:{port} (Ctrl-C ends it)"),
            server_name="chatsite",
        )
        server.run()


def _refuse_port_in_use(host: str, port: int) -> None:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            another = f"Choose another port, e.g. PORT={port + 1} make run"
            raise CommandError(f"Can't listen on {host}:{port}: {error.strerror}. {another}") from None
        except OverflowError:
            raise CommandError(f"There is no port {port}: 1 to 65535 are.") from None


def _install_uvloop() -> None:
    # Before daphne is imported: it makes its event loop then.
    import asyncio

    import uvloop

    asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
