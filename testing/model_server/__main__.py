"""`python -m testing.model_server --port P`: the scripted OpenAI-compatible server as a process.

Prints one line with its port. With `--until-stdin-closes` it ends with the process that started it.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys

from testing.model_server.server import serve


async def run(port: int, *, until_stdin_closes: bool) -> None:
    server = await serve("127.0.0.1", port)
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    if until_stdin_closes:
        loop.add_reader(sys.stdin.fileno(), ended.set)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await ended.wait()
    server.close()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m testing.model_server")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--until-stdin-closes", action="store_true")
    arguments = parser.parse_args()
    asyncio.run(run(arguments.port, until_stdin_closes=arguments.until_stdin_closes))


if __name__ == "__main__":
    main()
