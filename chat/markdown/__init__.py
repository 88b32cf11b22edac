"""Markdown of replies as sanitized HTML blocks, whole or while it grows.

Pages call `render` and `render_partial`; the consumer keeps one `BlockRenderer` per part, reply and viewer.
"""

from chat.markdown.blocks import render
from chat.markdown.growing import BlockRenderer, Patch, render_partial

__all__ = ["BlockRenderer", "Patch", "render", "render_partial"]
