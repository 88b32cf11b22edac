"""Markdown of replies as sanitized HTML blocks, whole or while it grows.

Pages call `render` and `render_partial`; the consumer keeps one `BlockRenderer` per part, reply and viewer.
"""

from chat.markdown.blocks import render
from chat.markdown.growing import BlockRenderer, render_partial
from chat.markdown.patch import Patch

__all__ = ["BlockRenderer", "Patch", "render", "render_partial"]
