"""What a worker has loaded by its start stays for good, so the collection of garbage need not go through it each time.

A collection that goes through everything holds up the event loop for 0.1 s, or for 0.6 s where memory is slow to reach,
again and again while replies are live. `chatsite.lifespan` puts this in place.
"""

from __future__ import annotations

import gc

THRESHOLDS = (10_000, 10, 10)
"""So many more objects begin a collection of the youngest; so many of those one of the middle generation, and so on.

Python 3.11's own are 700, 10 and 10: with up to 500 live replies a dozen collections a second, for next to nothing.
"""


def spare_what_stays() -> None:
    """To be called when what is needed for good is loaded. A second call does nothing: live replies would stay, too."""
    if gc.get_freeze_count():
        return
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
