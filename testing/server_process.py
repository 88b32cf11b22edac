"""A server program run for the tests: its process, its port, its log. Redis, PostgreSQL and our workers build on it."""

from __future__ import annotations

import atexit
import functools
import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import ClassVar, Self

START_TIMEOUT_SECONDS = 30.0
STOP_TIMEOUT_SECONDS = 15.0
# Below the range the kernel takes for outgoing connections: while a server is down, a client that keeps dialling
# its port could otherwise be given that very port and end up connected to itself.
PORTS = range(20000, 32000)
LOG_TAIL_LINES = 200


class ServerDidNotStart(Exception):
    """The process ended, or was not ready in time. The message holds the end of its log."""


class ServerProcess:
    """A program that serves one port of 127.0.0.1, as a context manager; it keeps its port over a restart.

    A subclass gives `name`, `command()` and `is_ready()`. The process gets a session of its own, so that Ctrl-C in
    the terminal reaches pytest alone and pytest can end it in order.
    """

    name: ClassVar[str]
    # What the running test has started, so that a failure can show the logs; emptied before each test.
    started: ClassVar[list[ServerProcess]] = []

    def __init__(self, *, port: int | None = None, run_as: pwd.struct_passwd | None = None) -> None:
        self.port = port or free_port()
        self.run_as = run_as
        self.folder = Path(tempfile.mkdtemp(prefix=f"{self.name}-{self.port}-", dir=work_folder()))
        self.log_path = self.folder / "log"
        self._process: subprocess.Popen[bytes] | None = None

    @staticmethod
    def running() -> list[ServerProcess]:
        """Every server that has been launched and not yet been seen to end."""
        return list(_running())

    def command(self) -> list[str]:
        raise NotImplementedError

    def is_ready(self) -> bool:
        """Whether it answers. Asked again and again after the start, so it must come back fast."""
        raise NotImplementedError

    def environment(self) -> Mapping[str, str]:
        return os.environ

    @property
    def process(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise RuntimeError(f"{self.name} has not been started")
        return self._process

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self, *, timeout_seconds: float = START_TIMEOUT_SECONDS) -> Self:
        """Returns when the server answers; raises `ServerDidNotStart`."""
        self.launch()
        deadline = time.monotonic() + timeout_seconds
        while not self.is_ready():
            if not self.is_running or time.monotonic() > deadline:
                self.kill()
                raise ServerDidNotStart(f"{self.name} on port {self.port}:\n{self.log_tail()}")
            time.sleep(0.02)
        return self

    def launch(self) -> None:
        """Starts the process without waiting for it."""
        if self.is_running:
            return
        if is_listening(self.port):
            # Otherwise that other server would answer for ours, which dies unseen.
            raise ServerDidNotStart(f"{self.name}: port {self.port} is in use")
        owner = {"user": self.run_as.pw_uid, "group": self.run_as.pw_gid, "extra_groups": []} if self.run_as else {}
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                self.command(),
                cwd=self.working_folder(),
                env=dict(self.environment()),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                **owner,  # type: ignore[call-overload]
            )
        if self not in ServerProcess.started:
            ServerProcess.started.append(self)
        _running().add(self)

    def working_folder(self) -> Path:
        return self.folder

    def stop(self, *, timeout_seconds: float = STOP_TIMEOUT_SECONDS) -> int | None:
        """Ends it with SIGTERM, and with SIGKILL when that takes too long. Gives its exit code."""
        self.resume()
        self.terminate()
        return self.wait(timeout_seconds)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL, as when the machine takes the process away; returns when it is gone."""
        for pid in self.pause():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.wait(STOP_TIMEOUT_SECONDS)

    def pause(self) -> list[int]:
        """SIGSTOP: connections stay open and nobody answers. Gives the processes it stopped."""
        # The parent first: then no child can appear that is not on the list.
        pids = self.pids()
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        children = self.child_pids()
        for pid in children:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
        return pids + children

    def resume(self) -> None:
        for pid in [*self.pids(), *self.child_pids()]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    def restart(self) -> Self:
        self.stop()
        return self.start()

    def wait(self, timeout_seconds: float) -> int | None:
        """Waits for the end, which it enforces after `timeout_seconds`."""
        if self._process is None:
            return None
        try:
            code = self._process.wait(timeout_seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        _running().discard(self)
        return code

    def send_signal(self, number: signal.Signals) -> None:
        if self.is_running:
            self.process.send_signal(number)

    def pids(self) -> list[int]:
        return [self.process.pid] if self.is_running else []

    def child_pids(self) -> list[int]:
        """Processes that the server has forked, such as PostgreSQL's one per connection."""
        children = [Path(f"/proc/{pid}/task/{pid}/children") for pid in self.pids()]
        with suppress(FileNotFoundError):
            return [int(pid) for path in children for pid in path.read_text().split()]
        return []

    def log(self) -> str:
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def log_tail(self) -> str:
        return "\n".join(self.log().splitlines()[-LOG_TAIL_LINES:])

    def __enter__(self) -> Self:
        return self if self.is_running else self.start()

    def __exit__(self, *exc: object) -> None:
        self.stop()


def wait_until(is_true: Callable[[], object], what: str, *, timeout_seconds: float = 10.0) -> None:
    """Polls until `is_true()` is; raises `TimeoutError` naming `what` was waited for."""
    deadline = time.monotonic() + timeout_seconds
    while not is_true():
        if time.monotonic() > deadline:
            raise TimeoutError(f"after {timeout_seconds:g} s still not so: {what}")
        time.sleep(0.02)


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on, outside the range of outgoing connections."""
    while True:
        port = random.choice(PORTS)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def is_listening(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=0.5):
        return True
    return False


def kill_all() -> None:
    """Ends, by process id, whatever is still running."""
    for server in ServerProcess.running():
        server.kill()


@functools.cache
def work_folder() -> Path:
    """Where this session's servers keep their files; removed when Python ends."""
    folder = Path(tempfile.mkdtemp(prefix="chatsite-"))
    # A server that runs as another user has to reach its own folder below.
    folder.chmod(0o711)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@functools.cache
def _running() -> set[ServerProcess]:
    running: set[ServerProcess] = set()
    work_folder()  # its removal is registered first and so comes last
    atexit.register(kill_all)
    return running
