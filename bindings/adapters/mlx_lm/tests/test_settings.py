"""The three settings decode alike, and an emulated link is charged what it says."""

import subprocess

import numpy as np
import pytest

from avsg_mlx_lm.harness.link import Link
from avsg_mlx_lm.harness.mapped import PAGE, MappedRows
from avsg_mlx_lm.harness.settings import device_bytes, measure


def test_the_settings_copy_what_they_say_and_give_equal_logits(small):
    settings, different = measure(small.model, small.text, small.prompt, 12, small.slots, Link(), small.prefilled)
    resident, copying, avsg = settings
    assert different == 0 and resident.layers == []
    assert copying.total("copied_rows") == 12 * 2 * small.k and 0 < avsg.total("copied_rows") < 12 * 2 * small.k
    assert copying.total("plan_seconds") == 0 and avsg.total("plan_seconds") > 0
    assert all(setting.total("charge") == 0 and len(setting.seconds) == 12 for setting in settings)


def test_the_settings_on_a_disk_give_equal_logits_and_the_page_cache_has_avsgs_memory(small, disk):
    sizes = small.prompt, 12, small.slots
    settings, different = measure(small.model, small.text, *sizes, Link(), small.prefilled, str(disk))
    resident, reading, mapped, avsg = settings
    assert different == 0 and resident.layers == [] and list(disk.iterdir()) == []
    everything = 12 * 2 * small.k
    assert reading.total("copied_rows") == mapped.total("copied_rows") == everything > avsg.total("copied_rows") > 0
    assert reading.total("plan_seconds") == mapped.total("plan_seconds") == 0 < avsg.total("plan_seconds")
    assert mapped.total("memory") > 2 * small.slots * 1152


def test_a_mapped_file_keeps_the_pages_that_were_used_last(disk):
    if subprocess.check_output(["stat", "-f", "-c", "%T", disk]).strip() == b"tmpfs":
        pytest.skip("a file of a tmpfs is nowhere but in memory")
    rng = np.random.default_rng(2)
    rows, found = rng.integers(0, 256, (1000, 1152), dtype=np.uint8), np.empty((64, 1152), np.uint8)
    file = MappedRows(str(disk), 1000, 1152, memory=100 * PAGE)
    file.write(0, rows)
    for _ in range(4):
        ids = rng.permutation(1000)[:64].astype(np.int32)
        file.read(ids, found)
        assert (found == rows[ids]).all()
        file.end_step()
        assert file.cached_bytes() == 100 * PAGE
    before = device_bytes()
    file.read(ids[::-1], found)
    assert (found == rows[ids[::-1]]).all() and device_bytes() - before <= 40 * PAGE
    file.close()


def test_a_link_is_charged_for_every_byte(small):
    link = Link(gigabytes_per_second=0.01, latency_us=500)
    settings, different = measure(small.model, small.text, small.prompt, 4, small.slots, link, small.prefilled)
    assert different == 0
    needed = 2 * link.seconds(small.k * 1152, 0.0)
    assert settings[1].total("copy_seconds") == pytest.approx(4 * needed) and min(settings[1].seconds) >= needed
    assert settings[2].total("copy_seconds") < settings[1].total("copy_seconds")


def test_a_links_time_is_latency_and_bytes():
    assert Link(1.0, 200.0).seconds(1_000_000, 5.0) == pytest.approx(0.0012)
    assert Link(1.0, 200.0).seconds(0, 5.0) == 0 and Link().seconds(1 << 30, 5.0) == 5.0
    assert (str(Link()), str(Link(25.0))) == ("own memory", "25 GB/s")


@pytest.mark.parametrize("repeat", [0.0, 0.9])
def test_a_text_repeats_as_often_as_asked(repeat):
    from avsg_mlx_lm.harness.model import random_text

    text = random_text(2000, repeat=repeat)
    again = sum(a == b for a, b in zip(text, text[1:])) / len(text)
    assert abs(again - repeat) < 0.05
