"""Prefill in one process, decode in another, over Mooncake's Transfer Engine.

A prefill process computes a prompt with mlx-lm and writes its rows, layer by layer, into the
`avsg.Pool` of the process that decodes.
"""

from .control import Channel, Geometry
from .decode import Receiver, Request
from .endpoint import Endpoint
from .errors import MismatchError, PeerError, TransferError
from .node import NodePool
from .prefill import PrefillServer

__all__ = [
    "Channel",
    "Endpoint",
    "Geometry",
    "MismatchError",
    "NodePool",
    "PeerError",
    "PrefillServer",
    "Receiver",
    "Request",
    "TransferError",
]
