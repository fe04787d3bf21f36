"""An emulated link between host and device memory."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Link:
    """A link of a bandwidth and a latency for each batch of copies.

    A bandwidth of None is this machine's own memory.

    A CPU copies scattered rows more slowly than the links of interest, so that slowing it down
    emulates none of them. A batch of copies is charged what the link would need, in the place of
    what it took here.
    """

    gigabytes_per_second: float | None = None
    latency_us: float = 0.0

    def seconds(self, bytes_: int, measured: float) -> float:
        """Returns what one batch of copies is charged, if it took `measured` seconds here.

        No bytes take no time.
        """
        if self.gigabytes_per_second is None:
            return measured
        return self.latency_us * 1e-6 + bytes_ / (self.gigabytes_per_second * 1e9) if bytes_ else 0.0

    def __str__(self) -> str:
        if self.gigabytes_per_second is None:
            return "own memory"
        return f"{self.gigabytes_per_second:g} GB/s"
