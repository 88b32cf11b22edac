"""Producing replies: engines, the reply buffer, the runner, stop signals, this worker. Knows no rooms, users or SQL."""
