"""The container files agree with each other and with the settings; the proxy's configuration runs in a real nginx."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import websockets
import yaml
from websockets.asyncio.server import Server, ServerConnection
from websockets.http11 import Request, Response

from testing.bench.servers import HEAP
from testing.server_process import ServerProcess, free_port, is_listening
from testing.services import PROJECT, site_environment, site_variables

DOCKERFILE = (PROJECT / "Dockerfile").read_text()
COMPOSE: dict[str, Any] = yaml.safe_load((PROJECT / "docker-compose.yml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OLLAMA_PORT = 11434
FINAL_STAGE = DOCKERFILE[DOCKERFILE.rindex("\nFROM ") :]


def test_the_site_runs_as_a_user_without_rights() -> None:
    assert "USER 10001:10001" in FINAL_STAGE
    assert SERVICES["web"]["cap_drop"] == ["ALL"]


def test_workers_in_containers_are_those_that_are_measured() -> None:
    assignments = {name: f"{name}={value}" for name, value in HEAP.items()}
    for name, assignment in assignments.items():
        assert re.findall(rf"^(?:ENV|   ) ({name}=\S+)", FINAL_STAGE, flags=re.MULTILINE) == [assignment]
    for document in ("OPERATIONS", "BENCHMARKS"):
        assert " ".join(assignments.values()) in (PROJECT / f"docs/{document}.md").read_text()


def test_the_image_gets_only_what_the_site_needs() -> None:
    """No tests, no .env, no history: .dockerignore forbids everything and lets a list in."""
    lines = (PROJECT / ".dockerignore").read_text().split()
    assert lines[0] == "*"
    allowed = {line.removeprefix("!") for line in lines if line.startswith("!")}
    packages = {path.parent.name for path in PROJECT.glob("*/__init__.py")} - {"testing"}
    assert packages | {"manage.py", "requirements.txt", "templates", "static"} <= allowed
    assert "**/tests" in lines
    assert not allowed & {".env", ".git", "var", "testing"}


def test_workers_get_longer_to_end_than_they_need_to_drain() -> None:
    grace = re.fullmatch(r"\$\{STOP_GRACE_PERIOD:-(\d+)s\}", SERVICES["web"]["stop_grace_period"])
    assert grace and int(grace[1]) >= drain_seconds() + 10


def drain_seconds() -> int:
    """The default."""
    found = re.search(r"^# DRAIN_SECONDS=(\d+)$", (PROJECT / ".env.example").read_text(), flags=re.MULTILINE)
    assert found
    return int(found[1])


def test_no_log_grows_without_bound() -> None:
    for name, service in SERVICES.items():
        assert service["logging"]["options"] == {"max-size": "10m", "max-file": "5"}, name


def test_what_the_world_reaches_can_write_nowhere_but_where_it_must() -> None:
    for name in ("web", "migrate", "proxy"):
        assert SERVICES[name]["read_only"] is True, name
        assert SERVICES[name]["tmpfs"] == ["/tmp"], name  # noqa: S108  # the container's


def test_the_model_of_the_profile_answers_without_an_edit(tmp_path: Path) -> None:
    """Its service, run with a stand-in for Ollama, leaves the file that the workers read as they start after it."""
    model, web = SERVICES["model"], SERVICES["web"]
    assert web["depends_on"]["model"] == {"condition": "service_completed_successfully", "required": False}
    assert web["environment"]["ENV_FILE"] == "/data/model.env"
    ollama = tmp_path / "ollama"
    ollama.write_text('#!/bin/sh\n[ "$1 $2" = "pull tiny" ]\n')
    ollama.chmod(0o755)
    script = model["command"][0].replace("$$", "$").replace("/data/", f"{tmp_path}/")
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "OLLAMA_MODEL": "tiny"}
    subprocess.run(["sh", "-c", script], env=environment, check=True)
    show = "from django.conf import settings; print(settings.OPENAI_BASE_URL)"
    told = site_environment(DJANGO_SETTINGS_MODULE="chatsite.settings", ENV_FILE=str(tmp_path / "model.env"))
    shown = subprocess.run([sys.executable, "-c", show], cwd=PROJECT, env=told, capture_output=True, check=True)
    assert shown.stdout.decode().strip() == f"http://ollama:{OLLAMA_PORT}/v1"


def test_without_the_profile_no_model_is_left_over_from_last_time() -> None:
    assert SERVICES["migrate"]["command"][-1].startswith("rm -f /data/model.env && ")


def test_three_workers_wait_for_the_one_that_migrates() -> None:
    web = SERVICES["web"]
    assert web["deploy"]["replicas"] == 3
    assert web["depends_on"]["migrate"]["condition"] == "service_completed_successfully"
    migrating = [name for name, service in SERVICES.items() if "manage.py migrate" in str(service.get("command"))]
    assert migrating == ["migrate"]


def test_every_service_that_stays_says_whether_it_is_healthy() -> None:
    in_image = {"web"} if "HEALTHCHECK" in FINAL_STAGE else set()
    healthy = {name for name, service in SERVICES.items() if "test" in service.get("healthcheck", {})}
    assert healthy | in_image == set(SERVICES) - {"migrate", "model"}


def test_compose_sets_only_variables_that_the_settings_read() -> None:
    assert set(SERVICES["web"]["environment"]) <= site_variables() | {"ENV_FILE"}


def test_every_other_setting_comes_from_the_file_beside_it_and_none_that_would_break_the_site() -> None:
    """What a developer has in it for `make run` must not count here."""
    web = SERVICES["web"]
    assert web["env_file"] == [{"path": ".env", "required": False}]
    assert {"DATABASE_URL", "REDIS_URL", "DATA_DIR", "DEBUG"} <= {k for k, value in web["environment"].items() if value}


def test_nothing_has_to_be_set_and_nothing_is_open_to_the_network_by_itself() -> None:
    text = (PROJECT / "docker-compose.yml").read_text()
    assert not re.search(r"\$\{\w+:?\?", text)
    published = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert published == ["${BIND:-127.0.0.1}:${HTTP_PORT:-8080}:8080"]


class Nginx(ServerProcess):
    """The repository's configuration with other ports, folders and upstream."""

    name = "nginx"

    def __init__(self, backend_ports: list[int]) -> None:
        super().__init__()
        self.folder.chmod(0o755)
        servers = "".join(f"server 127.0.0.1:{port} max_fails=1 fail_timeout=2s;" for port in backend_ports)
        (self.folder / "upstream.conf").write_text(f"upstream chatsite {{ zone chatsite 128k; {servers} }}")
        text = (PROJECT / "deploy" / "nginx.conf").read_text()
        text = text.replace("listen 8080", f"listen 127.0.0.1:{self.port}")
        text = text.replace("/tmp/", f"{self.folder}/")  # noqa: S108  # the container's folder, not ours
        (self.folder / "nginx.conf").write_text(text)

    def command(self) -> list[str]:
        program = shutil.which("nginx") or str(Path("/usr/sbin/nginx"))
        return [program, "-p", str(self.folder), "-c", "nginx.conf", "-e", "stderr", "-g", "daemon off;"]

    def is_ready(self) -> bool:
        return is_listening(self.port)


def tell_request(connection: ServerConnection, request: Request) -> Response | None:
    if request.headers.get("Upgrade") == "websocket":
        return None
    return connection.respond(200, json.dumps({"path": request.path, **dict(request.headers.raw_items())}))


async def tell_socket(socket: ServerConnection) -> None:
    assert socket.request is not None
    await socket.send(json.dumps({"port": socket.local_address[1], **dict(socket.request.headers.raw_items())}))
    async for text in socket:
        await socket.send(text)


@pytest.fixture
async def backends() -> AsyncIterator[list[Server]]:
    """Three servers that tell what they were asked."""
    servers = [
        await websockets.serve(tell_socket, "127.0.0.1", free_port(), process_request=tell_request) for _ in range(3)
    ]
    yield servers
    for server in servers:
        server.close()
        await server.wait_closed()


@pytest.fixture
def nginx(backends: list[Server]) -> Iterator[Nginx]:
    with Nginx([port_of(server) for server in backends]) as proxy:
        yield proxy


def port_of(server: Server) -> int:
    return int(server.sockets[0].getsockname()[1])


async def greet(nginx: Nginx) -> dict[str, Any]:
    async with websockets.connect(f"ws://127.0.0.1:{nginx.port}/ws/rooms/x/", proxy=None) as socket:
        greeting: dict[str, Any] = json.loads(await socket.recv())
        return greeting


@pytest.mark.processes
async def test_sockets_are_spread_over_the_workers_in_turn(nginx: Nginx, backends: list[Server]) -> None:
    seen = [(await greet(nginx))["port"] for _ in range(6)]
    assert sorted(seen) == sorted([port_of(server) for server in backends] * 2)


@pytest.mark.processes
async def test_a_socket_goes_to_the_next_worker_when_one_is_down(nginx: Nginx, backends: list[Server]) -> None:
    backends[0].close()
    await backends[0].wait_closed()
    seen = {(await greet(nginx))["port"] for _ in range(6)}
    assert seen == {port_of(backends[1]), port_of(backends[2])}


@pytest.mark.processes
async def test_the_workers_learn_the_host_with_its_port(nginx: Nginx) -> None:
    """They compare it with the Origin of a WebSocket, which has the port."""
    assert (await greet(nginx))["Host"] == f"127.0.0.1:{nginx.port}"


@pytest.mark.processes
async def test_https_before_the_proxy_is_passed_on_and_nothing_else_is_believed(nginx: Nginx) -> None:
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{nginx.port}", trust_env=False) as http:
        for said, passed_on in (("https", "https"), ("gopher", "http"), (None, "http")):
            response = await http.get("/", headers={"X-Forwarded-Proto": said} if said else {})
            assert response.json()["X-Forwarded-Proto"] == passed_on


@pytest.mark.processes
async def test_every_request_has_an_id_and_the_one_it_brings_counts(nginx: Nginx) -> None:
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{nginx.port}", trust_env=False) as http:
        ids = [(await http.get("/")).json()["X-Request-ID"] for _ in range(2)]
        brought = (await http.get("/", headers={"X-Request-ID": "my-own"})).json()["X-Request-ID"]
    assert len(set(ids)) == 2
    assert brought == "my-own"


@pytest.mark.processes
async def test_whoever_asks_the_proxy_for_metrics_asks_all_workers(nginx: Nginx) -> None:
    headers = {"Authorization": "Bearer x"}
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{nginx.port}", headers=headers, trust_env=False) as http:
        told = (await http.get("/metrics")).json()
    assert (told["path"], told["Authorization"]) == ("/metrics?of=site", "Bearer x")
