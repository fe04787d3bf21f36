"""Two processes over Mooncake: decoding is equal to the last bit, and a prefill process that fails harms nobody."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import LAYERS, K

from avsg_mooncake import Endpoint, PeerError, Receiver, TransferError
from avsg_mooncake.compare import compare, prefill_process

pytestmark = pytest.mark.usefixtures("mooncake")

HERE = Path(__file__).parent
THOROUGH = os.environ.get("AVSG_THOROUGH") == "1"
SIZES = [f"--layers={LAYERS}", f"--k={K}"]


def test_the_command_decodes_what_another_process_computed():
    sizes = ["--prompt=1024", "--steps=512"] if THOROUGH else ["--prompt=600", "--steps=32"]
    command = [sys.executable, "-m", "avsg_mooncake.compare", *sizes]
    out = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert out.returncode == 0, out.stderr
    print(out.stdout)
    assert " compared, 0 differ, max difference 0.0" in out.stdout


@pytest.fixture(scope="module")
def healthy():
    with prefill_process("-m", "avsg_mooncake.serve", *SIZES) as (_, address):
        yield address


def is_served(small, node, address):
    """Whether two requests in the same rows decode as one process does."""
    receiver, sizes = Receiver(node, address), {"prompt": small.prompt, "steps": small.steps, "slots": small.slots}
    reports = [compare(small.model, receiver, small.text[shift:], **sizes) for shift in (0, 1)]
    receiver.close()
    return not any(report.different for report in reports) and node.free == node.rows


def test_a_prefill_process_that_is_killed(small, healthy):
    node = small.node()
    with prefill_process(HERE / "faulty.py", "killed", *SIZES) as (process, address):
        receiver = Receiver(node, address)
        with pytest.raises(PeerError, match="has ended the connection|connection to the other process failed"):
            receiver.request(small.text[: small.prompt], small.steps)
        assert process.wait(10) == -signal.SIGKILL
    # The rows of the first layer had arrived.
    assert node.free == node.rows and node.blocks[0][0].any()
    assert is_served(small, node, healthy)


def test_a_prefill_process_serves_on_when_a_decode_process_is_gone(small, healthy):
    node = small.node()
    end = Endpoint()
    end.close()
    dead = SimpleNamespace(session=end.session, register=len, close=lambda: None)
    with pytest.raises(
        PeerError, match=f"the other process says: Mooncake returned -1 for a write .* to {end.session}"
    ):
        Receiver(node, healthy, endpoint=lambda: dead).request(small.text[: small.prompt], small.steps)
    assert is_served(small, node, healthy)


class NeverClosed(Endpoint):
    """An end whose transfers go on after a failure: the fault that the test must notice."""

    kept = []

    def close(self):
        self.kept.append(self)


@pytest.mark.parametrize("end", [Endpoint] + [NeverClosed] * THOROUGH)
def test_a_prefill_process_that_stalls_and_writes_late(small, healthy, tmp_path, end):
    """Another request has the rows when the stalled process goes on. Its write must not reach them."""
    node, log = small.node(), tmp_path / "log"
    with (
        log.open("w") as errors,
        prefill_process(HERE / "faulty.py", "stalled", *SIZES, stderr=errors) as (process, address),
    ):
        receiver = Receiver(node, address, timeout=5, endpoint=end)
        with pytest.raises(PeerError, match="the other process was silent for 5 s"):
            receiver.request(small.text[: small.prompt], small.steps)
        assert node.free == node.rows
        other = Receiver(node, healthy)
        with other.request(small.text[1 : small.prompt + 1], small.steps) as request:
            before = [block.copy() for segments in node.blocks for block in segments]
            process.send_signal(signal.SIGCONT)
            wait_for(lambda: "the request of 127.0.0.1:" in log.read_text())
            same = all(np.array_equal(*pair) for pair in zip(before, [b for s in node.blocks for b in s]))
            assert len(request.rows) == small.prompt + small.steps
        other.close()
    assert same == (end is Endpoint)
    NeverClosed.kept.clear()


def wait_for(condition, seconds=30):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.01)


WRITER = """
import ctypes, sys
from mooncake.engine import TransferEngine
session, target, length = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
end, rows = TransferEngine(), ctypes.create_string_buffer(length)
ctypes.memset(rows, 1, length)
end.initialize("127.0.0.1", "P2PHANDSHAKE", "tcp", "")
end.register_memory(ctypes.addressof(rows), length)
sys.exit(end.batch_transfer_sync_write(session, [ctypes.addressof(rows)], [target], [length]) != 0)
"""


def stopped_writer(end, memory):
    """Starts a process that writes ones to all of `memory`, and stops it in the middle of that write."""
    arguments = [end.session, str(memory.ctypes.data), str(memory.nbytes)]
    writer = subprocess.Popen([sys.executable, "-c", WRITER, *arguments], stderr=subprocess.PIPE)
    while not memory[0]:
        assert writer.poll() is None
    writer.send_signal(signal.SIGSTOP)
    time.sleep(0.2)  # What is in the sockets arrives.
    return writer


@pytest.mark.parametrize("closes", [True] + [False] * THOROUGH)
def test_a_write_that_has_begun_ends_with_the_end(closes):
    """Mooncake does not stop it when its memory is unregistered; closing the end does."""
    memory = np.zeros(1 << 28, np.uint8)
    ranges = [(memory.ctypes.data, memory.nbytes)]
    for _ in range(5):
        end = Endpoint()
        end.register(ranges)
        writer = stopped_writer(end, memory)
        if not memory[-1]:
            break
        # The machine was so busy that the write ended before the signal came.
        writer.kill()
        writer.communicate()
        end.close()
        memory[:] = 0
    assert not memory[-1]
    end.unregister(ranges)
    if closes:
        end.close()
    memory[:] = 7
    writer.send_signal(signal.SIGCONT)
    writer.communicate(timeout=60)
    assert (writer.returncode == 0, bool((memory == 7).all())) == (not closes, closes)
    end.close()


def test_an_end_refuses_writes_outside_of_what_is_registered():
    memory, rows = np.zeros(4096, np.uint8), np.ones(4096, np.uint8)
    end, other = Endpoint(), Endpoint()
    # One answers for the session, and one takes the rows.
    assert len(end._ports) == len(other._ports) == 2 and int(end.session.partition(":")[2]) in end._ports
    end.register([(memory.ctypes.data, 2048)])
    other.register([(rows.ctypes.data, rows.nbytes)])
    write = (end.session, [rows.ctypes.data], [memory.ctypes.data])
    other.write(*write, [2048])
    assert memory[:2048].all()
    with pytest.raises(TransferError, match="Mooncake returned -1 for a write of 2049 bytes to 127.0.0.1"):
        other.write(*write, [2049])
    end.unregister([(memory.ctypes.data, 2048)])
    memory[:] = 0
    with pytest.raises(TransferError, match="has not registered these addresses"):
        other.write(*write, [2048])
    assert not memory.any()
    end.close()
    other.close()
