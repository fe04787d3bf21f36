"""Threads that engines share, choices that are set, the log, and a forked child."""

import os
import subprocess
import sys

import pytest

import avsg


def engine(pool, **options):
    return avsg.Engine(pool, k=16, slots=64, **options)


def test_engines_share_workers_and_choices_are_set():
    pool = avsg.Pool(1, 128, 64)
    with avsg.Workers(3, spin_us=-1) as workers:
        both = [engine(pool, workers=workers, copier=avsg.Copier.STREAM, copier_ahead=2) for _ in range(2)]
        assert [found.info.threads for found in both] == [3, 3]
        assert both[0].info.cores == 3 and both[0].info.copier == "stream+2"
    with pytest.raises(avsg.InvalidError, match="worker threads is 0"):
        avsg.Workers(0)
    with pytest.raises(avsg.InvalidError, match="cpus is 1023"):
        avsg.Workers(2, cpus=[1023])


def test_the_log_gets_what_was_chosen():
    seen = []
    avsg.set_log(lambda level, text: seen.append((level, text)), avsg.LogLevel.DEBUG)
    engine(avsg.Pool(1, 128, 320), cores=2)
    avsg.set_log(None)
    assert (avsg.LogLevel.DEBUG, "2 worker threads, not pinned") in seen, seen


def test_a_forked_child_is_refused():
    script = """
import os, avsg
pool = avsg.Pool(1, 128, 64)
if os.fork() == 0:
    try:
        pool.read_row(0, 0)
    except avsg.ForkedError as error:
        os._exit(0 if "pass what Pool.export returned in the parent to Pool.attach" in str(error) else 2)
    os._exit(1)
assert os.wait()[1] == 0
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60, env=os.environ)
