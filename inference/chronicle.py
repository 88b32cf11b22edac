"""The life of inferences as lines of the log: ids, sizes and times, never what was said. It listens to a `Life`."""

from __future__ import annotations

import logging

from inference.ids import about
from inference.life import Ended, FirstChunk, Moment, Pressed, Started, Stopped

logger = logging.getLogger(__name__)


def write(moment: Moment) -> None:
    """Log what has happened to an inference; what a worker does for all of them is logged where it is done."""
    if isinstance(moment, Started | FirstChunk | Stopped | Ended | Pressed):
        with about(moment.inference_id):
            _write(moment)


def _write(moment: Started | FirstChunk | Stopped | Ended | Pressed) -> None:
    match moment:
        case Started():
            logger.info("started with model %s", moment.model)
        case FirstChunk():
            logger.info("first chunk after %.3f s", moment.seconds)
        case Stopped():
            logger.info("stop from %s, heard by %s", moment.source, moment.by)
        case Pressed():
            logger.info("stop from %s: %s after %.3f s", moment.source, moment.outcome, moment.seconds)
        case Ended():
            _write_end(moment)


def _write_end(end: Ended) -> None:
    if end.ending is None:
        logger.info("over after %.3f s: its rows are gone", end.seconds)
        return
    size = f"{end.ending.position} of {end.generated} characters in {end.chunk_count} chunks"
    logger.info("%s after %.3f s with %s", end.ending.status, end.seconds, size)
