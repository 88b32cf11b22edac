"""What operators can measure (docs/METRICS.md); `chat.runtime` wires it, once for each process."""

from chat.metrics.gathering import Gathering
from chat.metrics.measured import Metrics
from chat.metrics.now import Now, watch_lag

__all__ = ["Gathering", "Metrics", "Now", "watch_lag"]
