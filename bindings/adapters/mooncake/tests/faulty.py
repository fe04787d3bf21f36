"""A prefill process that fails in the middle of a request: python faulty.py FAULT [options of avsg_mooncake.serve]

The rows of the first layer have been written when it fails.
"""

import os
import signal
import sys

from avsg_mooncake import serve
from avsg_mooncake.prefill import PrefillServer, Writer

FAULT = sys.argv.pop(1)


class Faulty(Writer):
    """Fails when the second layer's rows are to be written."""

    def _write(self, layer, first, staged):
        if (layer, first) == (1, 0):
            # A stopped process goes on from here when somebody sends SIGCONT.
            os.kill(os.getpid(), {"killed": signal.SIGKILL, "stalled": signal.SIGSTOP}[FAULT])
        super()._write(layer, first, staged)


PrefillServer.writer = Faulty
serve.main()
