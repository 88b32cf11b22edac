"""Close codes 1011 to 1013 under daphne. `chatsite.lifespan` puts this in place when daphne runs.

Autobahn, which daphne speaks WebSocket with, lets an application close only with 1000 and 3000 to 4999; "restarting" is
1012 in the registry of RFC 6455 all the same, and browsers pass it on.
"""

from __future__ import annotations

from daphne.ws_protocol import WebSocketProtocol


def allow_registered_codes() -> None:
    """Let `websocket.close` carry any code. May be called twice."""
    WebSocketProtocol.serverClose = _close


def _close(protocol: WebSocketProtocol, code: int | None = None) -> None:
    if protocol.state == protocol.STATE_OPEN:
        protocol.sendCloseFrame(code=1000 if code is None else code)
