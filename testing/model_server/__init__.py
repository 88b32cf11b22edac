"""A scripted OpenAI-compatible server: the one stand-in of the tests, since the model is somebody else's.

Tests use `ModelServer` (the fixture `model_server`); `python -m testing.model_server` is the process.
"""

from testing.model_server.client import ModelServer
from testing.model_server.journal import Record, State
from testing.model_server.script import Script, Step

__all__ = ["ModelServer", "Record", "Script", "State", "Step"]
