"""Exceptions of the library: one class for each status, with the library's sentence as the message."""

from __future__ import annotations

from ._header import Status


class AvsgError(Exception):
    """A call of the library failed. The message names the value, the limit and the remedy."""

    #: The avsg_status that the library returned; 0 if this package raised the exception by itself.
    status: int = Status.OK


class InvalidError(AvsgError, ValueError):
    """A value is outside its range or an array is too short. The call changed nothing.

    A selected id without a row drops its plan (`Engine.plan`).
    """

    status = Status.INVALID


class NullError(AvsgError, ValueError):
    """A required argument is missing, or the object was closed. The call changed nothing."""

    status = Status.NULL


class HandleError(AvsgError, ValueError):
    """A handle was destroyed before, or is of another kind."""

    status = Status.HANDLE


class SizeError(AvsgError):
    """The library and this package disagree about the size of a struct."""

    status = Status.SIZE


class BusyError(AvsgError):
    """Another thread is inside a call on the same object.

    The call changed nothing and may be repeated.
    """

    status = Status.BUSY


class UnsupportedError(AvsgError, NotImplementedError):
    """The library or the device does not have what was asked for."""

    status = Status.UNSUPPORTED


class NoMemoryError(AvsgError, MemoryError):
    """The machine cannot give that much memory. Nothing was taken."""

    status = Status.NO_MEMORY


class SystemCallError(AvsgError, OSError):
    """The operating system refused a call."""

    status = Status.OS


class InternalError(AvsgError, RuntimeError):
    """A defect of the library.

    The object answers every later call like this: close it and report the sentence.
    """

    status = Status.INTERNAL


class DeviceError(AvsgError, RuntimeError):
    """The device's runtime refused a call; the sentence names the call and its code."""

    status = Status.DEVICE


class ForkedError(AvsgError, RuntimeError):
    """The object belongs to the process that this one was forked from."""

    status = Status.FORKED


class LostRowsError(AvsgError, LookupError):
    """Rows of a file are not whole: never written, lost with a process, damaged, or cut off.

    A step, transfer or load served all requests but those that `Plan.failures` names. Their state is empty: write their
    rows again.
    """

    status = Status.LOST_ROWS


BY_STATUS = {kind.status: kind for kind in AvsgError.__subclasses__()}


#: What the library's sentences call in C, and what this package calls it.
SPOKEN = {
    "is NULL, but a handle is needed; create one": "is closed, but the call needs it; make another one",
    "import the pool by its descriptor": "pass what Pool.export returned in the parent to Pool.attach",
    "avsg_devices": "avsg.devices()",
    "NULL": "None",
    "a constant of the header": "a member of the enumeration",
}


def from_status(status: int, name: str, sentence: str) -> AvsgError:
    """Returns the exception for a status that is not AVSG_OK."""
    kind = BY_STATUS.get(status, AvsgError)
    for in_c, in_python in SPOKEN.items():
        sentence = sentence.replace(in_c, in_python)
    error = kind(f"{name}: {sentence}" if kind in (AvsgError, InternalError) else sentence)
    error.status = status
    return error
