"""What a worker has loaded by its start stays for good, so the collection of garbage need not go through it each time.

A collection that goes through everything holds up the event loop for 0.1 s, or for 0.6 s on a machine that is slow to
give memory, again and again while replies are live. `chatsite.lifespan` puts this in place.
"""

from __future__ import annotations

import gc

THRESHOLDS = (10_000, 10, 10)
"""So many more objects begin a collection of the youngest; so many of those one of the middle generation, and so on.

Python's own begin with 700: at 500 live replies seven collections a second, for next to nothing.
"""


def spare_what_stays() -> None:
    """To be called once, when what is needed for good is loaded."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
