"""What the two processes raise."""


class TransferError(RuntimeError):
    """A request could not be served. The message says why; the node's pool is as it was before the request."""


class MismatchError(TransferError):
    """The two processes differ in what they must have in common."""


class PeerError(TransferError):
    """The other process is gone, is silent for too long, or says what the protocol has no place for."""
