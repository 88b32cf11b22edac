"""Says in one sentence that a port is taken, before `make run` does anything slow."""

import socket
import sys


def main(port: str) -> None:
    if not port.isdecimal() or not 0 < int(port) < 65536:
        sys.exit(f"PORT={port} is no port number.")
    with socket.socket() as probe:
        # As the server does: a port that merely waits out its last connections is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", int(port)))
        except OSError:
            other = int(port) + (137 if int(port) < 60_000 else -137)
            sys.exit(f"Port {port} is in use. Choose another: PORT={other} make run")


if __name__ == "__main__":
    main(sys.argv[1])
