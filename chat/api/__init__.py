"""The HTTP API under /api/v1 (docs/API.md). `chatsite.urls` mounts what `paths` gives."""

from chat.api.mounted import no_such_path, paths

__all__ = ["no_such_path", "paths"]
