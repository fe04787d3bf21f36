"""The pool: every row of every layer, in memory that processes can share, or in a file."""

from __future__ import annotations

import ctypes as c
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _header
from ._arguments import address, instance, struct, text, whole, wholes
from ._header import MAX_SEGMENTS, POOL_DESC_BYTES, Pages, PoolInfo, Role
from ._library import Handle, check, filled, lib
from ._pool_layout import pool_layout
from .errors import InvalidError
from .memory import View, host_span, numpy_of

if TYPE_CHECKING:
    import numpy as np


class PoolFile(NamedTuple):
    """The file that has a pool's rows, in the place of memory."""

    #: A folder, or a block device; with `keep` the path of the file.
    path: str | os.PathLike[str]
    #: Whether the file stays, for `Pool.open`. A file that does not stay has no name in its folder.
    keep: bool = False
    #: Whether reads and writes go through the page cache.
    buffered: bool = False
    #: The indexer of each layer, as of the engine; None: one for all.
    layer_indexer: Sequence[int] | None = None
    #: Bytes of the queue of writes, at most 256 MiB; 0: those of 1024 records with their padding, at least 8 MiB.
    queue_bytes: int = 0
    #: Milliseconds without a read or write that ends, after which a call fails; 0: 30000.
    timeout_ms: int = 0
    #: The sessions of a kept file, the rows of their blocks, and the most bytes of each; and the bytes of each token.
    sessions: int = 0
    session_rows: int = 0
    session_bytes: int = 0
    token_bytes: int = 0

    @staticmethod
    def config(file: Any) -> _header.avsg_pool_file:
        """Returns the C struct of a file, which may be the path alone."""
        if not isinstance(file, PoolFile):
            file = PoolFile(file)
        fields: dict[str, Any] = {"path": text(file.path, "file")}
        for name in set(PoolFile._fields) - {"path", "layer_indexer"}:
            fields[name] = getattr(file, name)
        if file.layer_indexer is not None:
            fields["layer_indexer"] = wholes(file.layer_indexer, "layer_indexer", c.c_uint32)
            fields["layer_indexers"] = len(fields["layer_indexer"])
        return struct(_header.avsg_pool_file, **fields)


class Session(NamedTuple):
    """What a session of a kept file has: token t is row t % n of block blocks[t // n], for blocks of n rows."""

    length: int
    blocks: np.ndarray
    data: bytes


class PoolShape(NamedTuple):
    """The geometry of a pool.

    Bytes may be one number, for rows of one segment, or one number for each of 1 to 4 segments.
    """

    layers: int
    #: Rows (tokens) of each layer.
    rows: int
    #: Bytes of each segment of a row.
    row_bytes: int | Sequence[int]
    #: Bytes from one row's segment to the next row's; None: rows are packed.
    row_stride: int | Sequence[int] | None = None
    #: Most bytes of a chunk; 0: 64 MiB; None: one chunk for each layer and segment.
    chunk_bytes: int | None = 0
    pages: Pages = Pages.DEFAULT
    #: None: the rows are in memory. Else their file; a path is that of a folder.
    file: PoolFile | str | os.PathLike[str] | None = None

    def config(self) -> _header.avsg_pool_config:
        """Returns the C struct of this geometry."""
        lengths = wholes(self.row_bytes, "row_bytes")
        strides = wholes([0] * len(lengths) if self.row_stride is None else self.row_stride, "row_stride")
        if not 1 <= len(lengths) <= MAX_SEGMENTS or len(strides) != len(lengths):
            text = f"a row has {len(lengths)} segments and {len(strides)} strides"
            raise InvalidError(f"{text}, but needs 1 to {MAX_SEGMENTS} segments with a stride each")
        chunk_bytes = c.c_size_t(-1).value if self.chunk_bytes is None else self.chunk_bytes
        fields = {"layers": self.layers, "rows": self.rows, "pages": self.pages}
        made = struct(_header.avsg_pool_config, segments=len(lengths), chunk_bytes=chunk_bytes, **fields)
        made.segment_bytes[: len(lengths)], made.segment_stride[: len(strides)] = lengths, strides
        if self.file is not None:
            made.file = address(PoolFile.config(self.file))
        return made

    def bytes(self) -> int:
        """Returns the bytes that a pool of this geometry takes at most, without taking them."""
        arguments = None, c.byref(self.config()), 0, 0, 0
        return filled(lib.avsg_get_memory, _header.avsg_memory, *arguments).pool


class Pool:
    """A host pool.

    Its memory stays until every engine on it and every array made from it are gone. With `file`, a
    folder or a `PoolFile`, its rows are in a file.
    """

    def __init__(
        self,
        layers: int,
        rows: int,
        row_bytes: int | Sequence[int],
        *,
        row_stride: int | Sequence[int] | None = None,
        chunk_bytes: int | None = 0,
        pages: Pages = Pages.DEFAULT,
        file: PoolFile | str | os.PathLike[str] | None = None,
    ) -> None:
        out = c.c_void_p()
        config = PoolShape(layers, rows, row_bytes, row_stride, chunk_bytes, pages, file).config()
        check(lib.avsg_pool_create(c.byref(config), c.byref(out)))
        self._adopt(out)

    def _adopt(self, pointer: c.c_void_p, memory: Any = None, layout: Any = None) -> Pool:
        self._handle: Handle | None = Handle(pointer, lib.avsg_pool_destroy, memory)
        self._runs: dict[tuple[int, int], list[tuple[int, int]]] = {}
        info = self.info
        #: Bytes between rows, and rows of a block; 0: there is no other block.
        self._row_stride = tuple(layout.row_stride) if layout else info.segment_stride
        self._block_rows = layout.block_rows if layout else 0
        self._shown = f"layers={info.layers} rows={info.rows} row_bytes={info.segment_bytes}"
        return self

    def __repr__(self) -> str:
        return f"<avsg.Pool {self._shown}{'' if self._handle else ' closed'}>"

    @classmethod
    def over(cls, shape: PoolShape, arrays: Sequence[Any]) -> Pool:
        """Makes a pool over the caller's writable arrays: one for each segment of each layer, layer by layer.

        A contiguous array has row r at r strides of its segment. Any other has its own strides, which are those of
        the segment in each layer: its shape is [rows, elements] or, for the pages of an engine, [blocks, rows of
        a block, elements] with a power of two of rows. The pool keeps the arrays alive.
        """
        config = instance(shape, PoolShape, "shape").config()
        layout, spans = pool_layout(config, arrays)
        config.layout, out = address(layout), c.c_void_p()
        check(lib.avsg_pool_create(c.byref(config), c.byref(out)))
        return cls.__new__(cls)._adopt(out, spans, layout)

    @classmethod
    def open(cls, file: PoolFile | str | os.PathLike[str]) -> Pool:
        """Opens a file that was kept, and makes this process its writer. Every flushed row is as it was.

        A `PoolFile` says how the file is read and written. Its `keep` and `layer_indexer` do not count.
        """
        out, config = c.c_void_p(), PoolFile.config(file)
        check(lib.avsg_pool_open(c.byref(config), c.byref(out)))
        return cls.__new__(cls)._adopt(out)

    @classmethod
    def attach(cls, descriptor: bytes, fd: int, role: Role = Role.READER) -> Pool:
        """Maps a pool that another process exported. `fd` stays the caller's.

        An engine on a reader's pool registers it with its own device, and refuses `append`.
        """
        if not isinstance(descriptor, bytes):
            raise TypeError(f"descriptor is of type {type(descriptor).__name__}, but needs to be the bytes of `export`")
        out = c.c_void_p()
        check(lib.avsg_pool_import(descriptor, len(descriptor), fd, role, c.byref(out)))
        return cls.__new__(cls)._adopt(out)

    def export(self) -> tuple[bytes, int]:
        """Returns the pool's descriptor and a new file descriptor, which the caller closes."""
        descriptor, fd = c.create_string_buffer(POOL_DESC_BYTES), c.c_int32(-1)
        check(lib.avsg_pool_export(self._handle, descriptor, POOL_DESC_BYTES, c.byref(fd)))
        return descriptor.raw, fd.value

    def demote(self) -> None:
        """Gives up the right to write, so that another process may take it."""
        check(lib.avsg_pool_demote(self._handle))

    def flush(self) -> None:
        """Makes the rows of a file durable. In memory it does nothing."""
        check(lib.avsg_pool_flush(self._handle))

    def session(self, number: int) -> Session:
        """Returns what the last commit of a session has left, also after a kill or a loss of power."""
        import numpy as np

        info = self.info
        blocks = np.empty(info.rows // info.session_rows if info.session_rows else 0, np.int32)
        data = c.create_string_buffer(max(info.session_bytes, 1))
        out = struct(_header.avsg_session, block_count=len(blocks), bytes=info.session_bytes)
        out.blocks, out.data = blocks.ctypes.data, c.addressof(data)
        check(lib.avsg_pool_get_session(self._handle, number, c.byref(out)))
        return Session(out.length, blocks[: out.block_count].copy(), data.raw[: out.bytes])

    def commit(self, number: int, length: int, blocks: Sequence[int], data: bytes = b"") -> None:
        """Makes all rows and data of tokens durable, and then a session of `length` tokens, more or fewer than before.

        Its rows cannot be written until a commit without them. 0 tokens without blocks remove the session.
        """
        listed = wholes(blocks, "blocks", c.c_int32)
        to = struct(_header.avsg_session, length=length, block_count=len(listed), bytes=len(data))
        to.blocks, to.data = c.addressof(listed), c.cast(c.c_char_p(data), c.c_void_p)
        check(lib.avsg_pool_commit_session(self._handle, number, c.byref(to)))

    def write_tokens(self, first: int, data: Any) -> None:
        """Writes the data of the tokens in the rows from `first` on, such as ids: an array of any type."""
        found = host_span(data, "data")
        if not found.contiguous:
            raise InvalidError("data is not contiguous, but tokens must be; make it contiguous")
        check(lib.avsg_pool_write_tokens(self._handle, first, found.address, found.nbytes))

    def read_tokens(self, first: int, tokens: int) -> np.ndarray:
        """Returns the data of tokens: bytes of the shape [tokens, token_bytes]. LostRowsError if some is not whole."""
        import numpy as np

        data = np.empty((whole(tokens, "tokens"), self.info.token_bytes), np.uint8)
        check(lib.avsg_pool_read_tokens(self._handle, first, data.ctypes.data, data.nbytes))
        return data

    @property
    def info(self) -> PoolInfo:
        """The description of the pool, with what it has read and written until now."""
        return PoolInfo.of(filled(lib.avsg_pool_get_info, _header.avsg_pool_info, self._handle))

    def close(self) -> None:
        """Ends the pool. Its memory is unmapped at once, or when no engine that is open and no array uses it."""
        self._handle = None
        # Their addresses are valid only with the handle.
        self._runs = {}

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def write_row(self, layer: int, row: int, data: Any) -> None:
        """Writes one row, its segments back to back in `data`.

        A slot that holds the row keeps its old bytes: `Engine.invalidate` makes each state that may hold the
        row's id copy it again.
        """
        found = host_span(data, "data")
        if not found.contiguous:
            raise InvalidError("data is not contiguous, but a row must be; make it contiguous")
        check(lib.avsg_pool_write_row(self._handle, layer, row, found.address, found.nbytes))

    def read_row(self, layer: int, row: int) -> np.ndarray:
        """Returns a copy of one row as bytes, its segments back to back.

        LostRowsError if it is not whole in the file of the pool.
        """
        import numpy as np

        data = np.empty(self.info.row_bytes, np.uint8)
        check(lib.avsg_pool_read_row(self._handle, layer, row, data.ctypes.data, data.nbytes))
        return data

    def write(self, layer: int | Sequence[int], first: int, *segments: Any) -> None:
        """Copies rows to the pool from row `first` on.

        There is an array of any type for each segment. Its first axis counts rows, and the elements
        of a row have the segment's bytes. With a list of layers there is an axis of layers before that. Slots that
        hold one of these rows keep its old bytes: see `write_row`.
        """
        import numpy as np

        layers = wholes(layer, "layer")
        each = list(zip(*segments, strict=True)) if np.ndim(layer) else [segments]
        if len(each) != len(layers):
            raise InvalidError(f"rows of {len(each)} layers were passed, but {len(layers)} are listed; pass each")
        of_layers = [self._checked(first, rows) for rows in each]
        if self.info.file_bytes and of_layers and len(of_layers[0][0]):
            whole_rows = [[np.ascontiguousarray(part).view(np.uint8) for part in rows] for rows in of_layers]
            data = np.stack([np.concatenate([part.reshape(len(part), -1) for part in rows], 1) for rows in whole_rows])
            place = data.ctypes.data, data.nbytes
            check(lib.avsg_pool_write_rows(self._handle, layers, len(layers), first, *place))
            return
        for number, arrays in zip(layers, of_layers):
            self._copy(number, first, arrays)

    def _checked(self, first: int, segments: Sequence[Any]) -> list[Any]:
        """Returns the rows of a layer, with an array for each segment."""
        lengths, first = self.info.segment_bytes, whole(first, "first")
        if len(segments) != len(lengths):
            raise InvalidError(f"{len(segments)} arrays were passed, but a row has {len(lengths)} segments; pass each")
        spans = [host_span(array, f"segment {index}") for index, array in enumerate(segments)]
        for index, (found, bytes_) in enumerate(zip(spans, lengths)):
            if not found.shape or found.nbytes != found.shape[0] * bytes_:
                raise InvalidError(
                    f"segment {index} has {list(found.shape)} elements of {found.dtype}, "
                    f"but needs {bytes_} bytes in each row; pass rows of the pool's width and type"
                )
            if found.shape[0] != spans[0].shape[0]:
                raise InvalidError(
                    f"segment {index} has {found.shape[0]} rows, but segment 0 has {spans[0].shape[0]}; pass whole rows"
                )
            if first + found.shape[0] > self.info.rows:
                end = first + found.shape[0]
                raise InvalidError(f"rows {first} to {end} were passed, but the pool has {self.info.rows}; pass fewer")
        # NumPy copies the bytes of an element that it has no type for, such as a bfloat16.
        return [numpy_of(found, f"|V{found.itemsize}") if found.nbytes else () for found in spans]

    def _copy(self, layer: int, first: int, arrays: Sequence[Any]) -> None:
        """Copies rows of a layer to their addresses."""
        import numpy as np

        for segment, rows in enumerate(arrays):
            runs, low, end = self._block_runs(layer, segment), first, first + len(rows)
            while low < end:
                index, start = divmod(low, runs[0][1])
                block = self._block(segment, *runs[index])[start : start + end - low]
                part = np.ascontiguousarray(rows[low - first : low - first + len(block)])
                block[:] = part.view(np.uint8).reshape(len(block), -1)
                low += len(block)

    def read(self, layer: int | Sequence[int], first: int, rows: int) -> list[np.ndarray]:
        """Returns a copy of rows from row `first` on: bytes of the shape [rows, segment bytes] for each segment.

        With a list of layers there is an axis of layers before that. LostRowsError if a row is not whole in the file
        of the pool.
        """
        import numpy as np

        layers, lengths = wholes(layer, "layer"), self.info.segment_bytes
        data = np.empty((len(layers), whole(rows, "rows"), sum(lengths)), np.uint8)
        place = whole(first, "first"), data.ctypes.data, data.nbytes
        check(lib.avsg_pool_read_rows(self._handle, layers, len(layers), *place))
        return np.split(data if np.ndim(layer) else data[0], np.cumsum(lengths)[:-1], axis=-1)

    def blocks(self, layer: int, segment: int = 0) -> list[np.ndarray]:
        """Returns all rows of a layer's segment without a copy.

        The arrays are bytes of the shape [rows, segment bytes]. A segment has one such array for
        each of its chunks, or of the blocks of the caller's arrays. They are read-only for a reader. Rows in a
        file have none.
        """
        return [self._block(segment, *run) for run in self._block_runs(layer, segment)]

    def _block(self, segment: int, address: int, rows: int) -> np.ndarray:
        """Returns rows of a segment that are one stride apart from an address on."""
        info = self.info
        view = View(address, (rows, info.segment_bytes[segment]), "|u1", self._handle, (self._row_stride[segment], 1))
        return view.numpy() if info.role == Role.READER else view.writable()

    def _block_runs(self, layer: int, segment: int) -> list[tuple[int, int]]:
        """The address and the number of rows of each chunk or block of a layer's segment."""
        key = (layer, segment)
        if key not in self._runs:
            start, rows = self._address(layer, segment, 0), self.info.rows
            # A chunk of the library holds a power of two of rows, and the next chunk begins with the
            # row after them. Each of the caller's arrays holds all rows, in blocks or without.
            chunks = self._chunks() if self.info.pages != Pages.CALLER else ()
            following = next((after.data for chunk, after in zip(chunks, chunks[1:]) if chunk.data == start), None)
            powers = (1 << bit for bit in range(rows.bit_length()) if 1 << bit < rows)
            all_rows = self._block_rows or rows
            each = next((power for power in powers if self._address(layer, segment, power) == following), all_rows)
            self._runs[key] = [
                (self._address(layer, segment, start), min(each, rows - start)) for start in range(0, rows, each)
            ]
        return self._runs[key]

    def _chunks(self) -> Any:
        chunks, count = (_header.avsg_chunk * self.info.chunks)(), c.c_size_t()
        check(lib.avsg_pool_get_chunks(self._handle, chunks, len(chunks), c.byref(count)))
        return chunks

    def _address(self, layer: int, segment: int, row: int) -> int:
        out = c.c_void_p()
        check(lib.avsg_pool_get_row(self._handle, layer, segment, row, c.byref(out)))
        return out.value or 0
