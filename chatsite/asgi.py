"""The ASGI application: `daphne chatsite.asgi:application` is a worker."""

import os

from channels.routing import ProtocolTypeRouter, URLRouter
from channels.security.websocket import WebsocketDenier
from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatsite.settings")
pages = get_asgi_application()

# These need Django to be set up.
from django.urls import path, re_path  # noqa: E402

from chat.consumer import RoomConsumer  # noqa: E402
from chatsite.lifespan import Lifespan  # noqa: E402
from chatsite.metrics import WithMetrics  # noqa: E402
from chatsite.origin import SameOrigin  # noqa: E402
from chatsite.requests import Requests  # noqa: E402

# Without the last one, any other address is an exception in the router: 500, and a traceback in the log.
sockets = URLRouter(
    [path("ws/rooms/<str:room_id>/", RoomConsumer.as_asgi()), re_path(r"^.*$", WebsocketDenier.as_asgi())]
)
served = ProtocolTypeRouter({"http": WithMetrics(pages), "websocket": SameOrigin(sockets)})
application = Lifespan(Requests(served))
