"""A socket whose frames nobody has taken yet is read no further, so that TCP holds back whoever sends them.

Daphne reads on without bound: a flood then holds up the event loop, which all other sockets share, and fills the
memory. `chatsite.lifespan` puts this in place when daphne runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

MAX_WAITING_FRAMES = 200
LOOK_AGAIN_SECONDS = 0.02


def hold_floods() -> None:
    """Let daphne's sockets hold back floods. To be called once."""
    from daphne.ws_protocol import WebSocketProtocol

    WebSocketProtocol.onMessage = held(WebSocketProtocol.onMessage)


def held(take: Callable[[Any, bytes, bool], None]) -> Callable[[Any, bytes, bool], None]:
    """What a daphne protocol does with a frame (`take`), and then to its transport when too many wait."""

    def on_message(protocol: Any, payload: bytes, is_binary: bool) -> None:  # Autobahn's signature
        take(protocol, payload, is_binary)
        if protocol.application_queue.qsize() == MAX_WAITING_FRAMES:
            # Once on the way up: what the last read has brought beside it comes all the same.
            protocol.transport.pauseProducing()
            _let_go_later(protocol)

    return on_message


def _let_go_later(protocol: Any) -> None:
    asyncio.get_running_loop().call_later(LOOK_AGAIN_SECONDS, _let_go, protocol)


def _let_go(protocol: Any) -> None:
    is_open = protocol.state == protocol.STATE_OPEN
    if is_open and protocol.application_queue.qsize() >= MAX_WAITING_FRAMES / 2:
        _let_go_later(protocol)
    else:
        # Of one that closes nobody takes the frames any more, but its client's last one has to be read.
        protocol.transport.resumeProducing()
