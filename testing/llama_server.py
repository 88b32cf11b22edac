"""llama.cpp's own server, from the wheel `xllamacpp`, with a tiny model of random weights: one that nobody here wrote.

`LlamaServer` starts it for tests; `python -m testing.llama_server MODEL.gguf` is the process.
"""

from __future__ import annotations

import argparse
import json
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Self

from testing.tiny_gguf import write_tiny_gguf

REPOSITORY = Path(__file__).resolve().parents[1]
SLOTS = 2
CONTEXT_TOKENS = 2048  # of each slot
BATCH_TOKENS = 64  # it answers /metrics between batches of a prompt
START_TIMEOUT_SECONDS = 60.0
EXIT_TIMEOUT_SECONDS = 10.0
CALL_TIMEOUT_SECONDS = 5.0


class LlamaServer:
    """A server on a port of its own, some 5 ms a token; use as a context manager.

    It burns a core while it generates.
    """

    def __init__(self, folder: Path) -> None:
        self._model = folder / "tiny.gguf"
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> Self:
        write_tiny_gguf(self._model)
        self.port = _free_port()
        command = [sys.executable, "-m", "testing.llama_server", str(self._model), "--port", str(self.port)]
        self._process = subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            self._wait_until_healthy()
        except BaseException:
            self._process.kill()
            raise
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._process.terminate()
        try:
            self._process.wait(EXIT_TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def requests_processing(self) -> int:
        """How many requests it computes for."""
        return self._metric("llamacpp:requests_processing")

    def tokens_predicted(self) -> int:
        """How many tokens it has computed since its start, those of unfinished replies not counted."""
        return self._metric("llamacpp:tokens_predicted_total")

    def busy_slots(self) -> int:
        """How many of its slots compute."""
        return sum(bool(slot["is_processing"]) for slot in json.loads(self._get("/slots")))

    def _metric(self, name: str) -> int:
        for line in self._get("/metrics").decode().splitlines():
            if line.startswith(f"{name} "):
                return int(float(line.split()[1]))
        raise AssertionError(f"{name} is not among the metrics")

    def _get(self, path: str) -> bytes:
        url = f"http://127.0.0.1:{self.port}{path}"
        with urllib.request.urlopen(url, timeout=CALL_TIMEOUT_SECONDS) as answer:
            body: bytes = answer.read()
        return body

    def _wait_until_healthy(self) -> None:
        deadline = time.monotonic() + START_TIMEOUT_SECONDS
        while time.monotonic() < deadline:
            assert self._process.poll() is None, "the llama server ended at its start"
            try:
                self._get("/health")
            except OSError:
                time.sleep(0.05)
            else:
                return
        raise TimeoutError("the llama server is not up")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def main() -> None:
    import xllamacpp  # only the process loads its native library

    parser = argparse.ArgumentParser(prog="python -m testing.llama_server")
    parser.add_argument("model")
    parser.add_argument("--port", type=int, required=True)
    arguments = parser.parse_args()
    # Blocked before the server starts its threads, so that only sigwait below gets them.
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGINT])
    params = xllamacpp.CommonParams()
    params.model.path = arguments.model
    params.hostnames, params.port = ["127.0.0.1"], arguments.port
    params.n_parallel, params.n_ctx = SLOTS, SLOTS * CONTEXT_TOKENS
    params.n_batch = params.n_ubatch = BATCH_TOKENS
    params.warmup, params.endpoint_slots, params.endpoint_metrics = False, True, True
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(params)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    signal.sigwait([signal.SIGTERM, signal.SIGINT])


if __name__ == "__main__":
    main()
