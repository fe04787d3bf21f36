"""Rows in a mapped file, whose pages in the page cache have a limit: what a program without AVSG does."""

from __future__ import annotations

import ctypes
import mmap
import os

import numpy as np

PAGE = mmap.PAGESIZE
#: The most ranges that one call of process_madvise takes.
MOST_RANGES = 1024
PROCESS_MADVISE = 440


class MappedRows:
    """One layer's rows in a file without a name in a folder.

    `row_bytes` is the length of a row, and `memory` the most bytes that the file has in the page
    cache after a step.
    """

    def __init__(self, folder: str, rows: int, row_bytes: int, memory: int) -> None:
        self.row_bytes, self._limit = row_bytes, memory // PAGE
        length = -(-rows * row_bytes // PAGE) * PAGE
        self._fd = os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
        os.posix_fallocate(self._fd, 0, length)
        self._map = mmap.mmap(self._fd, length, prot=mmap.PROT_READ)
        self._map.madvise(mmap.MADV_RANDOM)
        self._bytes = np.frombuffer(self._map, np.uint8)
        self._rows = self._bytes[: rows * row_bytes].reshape(rows, row_bytes)
        self._process = os.pidfd_open(os.getpid())
        #: The last step that used each page; 0: the page is not in the page cache.
        self._used, self._step = np.zeros(length // PAGE, np.int64), 1
        self._libc = ctypes.CDLL(None, use_errno=True)

    def close(self) -> None:
        """Ends the file, whose blocks are free then."""
        del self._rows, self._bytes
        self._map.close()
        os.close(self._process)
        os.close(self._fd)

    def write(self, first: int, rows: np.ndarray) -> None:
        """Writes rows [rows, row bytes] from row `first` on."""
        start, end = first * self.row_bytes, (first + len(rows)) * self.row_bytes
        # One large write would make large folios in the page cache, which cannot be dropped page by page.
        for at, row in zip(range(start, end, self.row_bytes), np.ascontiguousarray(rows)):
            if os.pwrite(self._fd, row, at) != self.row_bytes:
                raise OSError(f"row {at // self.row_bytes} is not written")
        self._used[start // PAGE : -(-end // PAGE)] = self._step

    def read(self, ids: np.ndarray, out: np.ndarray) -> None:
        """Asks the kernel for all pages of the rows of `ids`, and then copies the rows."""
        start = ids.astype(np.int64) * self.row_bytes
        pages = np.unique(np.concatenate([start // PAGE, (start + self.row_bytes - 1) // PAGE]))
        self._used[pages] = self._step
        firsts = np.flatnonzero(np.diff(pages, prepend=-2) > 1)
        ranges = np.empty((len(firsts), 2), np.uint64)
        ranges[:, 0] = self._bytes.ctypes.data + pages[firsts] * PAGE
        ranges[:, 1] = np.diff(firsts, append=len(pages)) * PAGE
        for part in (ranges[at : at + MOST_RANGES] for at in range(0, len(ranges), MOST_RANGES)):
            numbers = PROCESS_MADVISE, self._process, part.ctypes.data, len(part), mmap.MADV_WILLNEED, 0
            if self._libc.syscall(*map(ctypes.c_long, numbers)) < 0:
                raise OSError(ctypes.get_errno(), "process_madvise")
        np.take(self._rows, ids, axis=0, out=out, mode="clip")

    def cached_bytes(self) -> int:
        """Returns the bytes that the file has in the page cache, as the kernel says."""
        cached = np.zeros(len(self._used), np.uint8)
        addresses = self._bytes.ctypes.data, len(self._bytes), cached.ctypes.data
        if self._libc.mincore(*map(ctypes.c_void_p, addresses)) < 0:
            raise OSError(ctypes.get_errno(), "mincore")
        return int((cached & 1).sum()) * PAGE

    def end_step(self) -> None:
        """Writes changed pages, and takes the pages that were used least recently out of the page cache.

        The kernel keeps a page that is not written yet, or that is mapped.
        """
        os.fdatasync(self._fd)
        cached = np.flatnonzero(self._used)
        oldest = cached[np.argsort(self._used[cached], kind="stable")][: max(0, len(cached) - self._limit)]
        for page in oldest.tolist():
            self._map.madvise(mmap.MADV_DONTNEED, page * PAGE, PAGE)
            os.posix_fadvise(self._fd, page * PAGE, PAGE, os.POSIX_FADV_DONTNEED)
        self._used[oldest] = 0
        self._step += 1
