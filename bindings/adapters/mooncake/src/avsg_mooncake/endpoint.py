"""Memory that another process writes: a thin layer over Mooncake's Transfer Engine.

This is the only module that knows Mooncake. Ranges of memory are pairs of an address and a number
of bytes.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .errors import TransferError

Range = tuple[int, int]

#: Ports of ends that were closed. A process that was stalled may still send a write there, to an
#: address that another request has by then, so that no later end listens at them.
_retired: set[int] = set()
#: How often an end is made anew because it got a retired port.
ATTEMPTS = 16


def transfer_engine() -> Any:
    """Returns Mooncake's class."""
    try:
        from mooncake.engine import TransferEngine
    except ImportError as error:
        raise TransferError(
            f"Mooncake's Transfer Engine does not load ({error}); install mooncake-transfer-engine-non-cuda with "
            "pip, and the system's libibverbs1, which that package needs for TCP, too"
        ) from None
    return TransferEngine


class Endpoint:
    """One end of transfers between processes: sockets or queue pairs, and registered memory.

    `host` is the address by which the other machines reach this one, `protocol` one of Mooncake's
    ("tcp", "rdma"), and `devices` the names of the network cards, separated by commas; empty: all.
    No server of metadata is needed: an endpoint answers for itself at its `session`.
    """

    def __init__(self, host: str = "127.0.0.1", protocol: str = "tcp", devices: str = "") -> None:
        make = transfer_engine()
        for _ in range(ATTEMPTS):
            before = _listening()
            self._engine = make()
            status = self._engine.initialize(host, "P2PHANDSHAKE", protocol, devices)
            if status:
                raise TransferError(
                    f"Mooncake returned {status} for host {host!r}, protocol {protocol!r} and devices {devices!r}; "
                    "name an address of this machine and a protocol that it has"
                )
            self._ports = _listening() - before
            if not self._ports & _retired:
                break
            self._engine = None
        else:
            raise TransferError(
                f"{ATTEMPTS} ends in a row got a port of one that was closed; let Mooncake choose from more ports with "
                "MC_MIN_RPC_PORT and MC_MAX_RPC_PORT"
            )
        #: What the other process passes to `write`.
        self.session = f"{host}:{self._engine.get_rpc_port()}"

    def register(self, ranges: Sequence[Range]) -> None:
        """Lets every process that knows the session write to these ranges."""
        addresses, lengths = [address for address, _ in ranges], [length for _, length in ranges]
        status = self._engine.batch_register_memory(addresses, lengths)
        if status:
            raise TransferError(
                f"Mooncake returned {status} when {len(ranges)} ranges of {sum(lengths)} bytes were registered; "
                "raise the limit of locked memory (ulimit -l), or reserve fewer rows"
            )

    def unregister(self, ranges: Sequence[Range]) -> None:
        """Refuses writes to these ranges that have not begun.

        Over TCP a write that has begun goes on: `close` ends it.
        """
        status = self._engine.batch_unregister_memory([address for address, _ in ranges])
        if status:
            raise TransferError(
                f"Mooncake returned {status} when {len(ranges)} ranges were unregistered; close the end"
            )

    def write(self, session: str, sources: Sequence[int], targets: Sequence[int], lengths: Sequence[int]) -> None:
        """Copies ranges of this process's registered memory to the other process, and waits until they are there."""
        status = self._engine.batch_transfer_sync_write(session, list(sources), list(targets), list(lengths))
        if status:
            raise TransferError(
                f"Mooncake returned {status} for a write of {sum(lengths)} bytes to {session}; "
                "see its log: the other process has ended, or has not registered these addresses"
            )

    def close(self) -> None:
        """Ends every connection. When this returns, no other process can write to this one through this end.

        Mooncake closes its sockets (over RDMA: destroys queue pairs and registrations) and joins
        its threads when the engine's last reference goes. That takes about a second, in which no
        other Python thread runs, because Mooncake's destructor keeps the interpreter's lock.
        """
        self._engine = None
        _retired.update(self._ports)


def _listening() -> set[int]:
    """Returns the TCP ports at which this process listens. Mooncake tells only one of its two."""
    own = set()
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            own.add(os.readlink(descriptor))
        except OSError:
            continue  # It was closed meanwhile.
    ports = set()
    for table in Path("/proc/self/net").glob("tcp*"):  # There is no tcp6 without IPv6.
        for line in table.read_text().splitlines()[1:]:
            fields = line.split()
            local, state = fields[1], fields[3]
            if state == "0A" and f"socket:[{fields[9]}]" in own:
                ports.add(int(local.rpartition(":")[2], 16))
    return ports
