"""An emulated link between host and device memory: a copy takes at least as long as the link would need."""

from __future__ import annotations

import time
from dataclasses import dataclass


@dataclass(frozen=True)
class Link:
    """A link of a bandwidth and a latency for each batch of copies. A bandwidth of None is this machine's own memory."""

    gigabytes_per_second: float | None = None
    latency_us: float = 0.0

    def seconds(self, bytes_: int) -> float:
        """Returns what the link needs for one batch of copies; nothing is needed for no bytes."""
        if self.gigabytes_per_second is None or bytes_ == 0:
            return 0.0
        return self.latency_us * 1e-6 + bytes_ / (self.gigabytes_per_second * 1e9)

    def wait(self, bytes_: int, begin: float) -> None:
        """Spins until the link would have copied the bytes of a copy that began at `begin` (time.perf_counter)."""
        end = begin + self.seconds(bytes_)
        while time.perf_counter() < end:
            pass

    def __str__(self) -> str:
        if self.gigabytes_per_second is None:
            return "own memory"
        return f"{self.gigabytes_per_second:g} GB/s"
