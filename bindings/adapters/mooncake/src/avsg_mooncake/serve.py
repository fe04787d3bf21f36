"""Serves prompts of a small random model until it is killed, and prints where it listens.

  python -m avsg_mooncake.serve --help

For another DeepSeek-V3.2 model of mlx-lm, pass it to `PrefillServer` as this program does.
"""

from __future__ import annotations

import socket
import sys

from avsg_mlx_lm.harness import options
from avsg_mlx_lm.harness.model import random_model

from .control import address_of
from .endpoint import Endpoint
from .errors import TransferError
from .prefill import PrefillServer


def main() -> None:
    """Serves until the process is killed."""
    parser = options.parser(__doc__, layers=3, k=64, seed=1)
    parser.add_argument(
        "--listen", default="127.0.0.1:0", help="host:port of the control connection (default: any port)"
    )
    parser.add_argument("--host", default="127.0.0.1", help="this machine's address for Mooncake")
    parser.add_argument("--protocol", default="tcp", help="tcp or rdma")
    parser.add_argument("--timeout", type=float, default=30, help="seconds that a message may take (default 30)")
    asked = parser.parse_args()
    model = random_model(asked.layers, asked.k, asked.seed)
    server = PrefillServer(model, Endpoint(asked.host, asked.protocol), timeout=asked.timeout)
    listener = socket.create_server(address_of(asked.listen))
    print("listening on {}:{}".format(*listener.getsockname()), flush=True)
    server.serve(listener)


if __name__ == "__main__":
    try:
        main()
    except TransferError as error:
        sys.exit(str(error))
