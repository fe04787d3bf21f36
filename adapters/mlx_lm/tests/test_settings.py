"""The three settings decode alike, and the emulated link takes the time that it says."""

import time

import pytest
from avsg_mlx_lm.harness.link import Link
from avsg_mlx_lm.harness.settings import measure


def test_the_settings_copy_what_they_say_and_give_equal_logits(small):
    settings, different = measure(small.model, small.text, small.prompt, 12, small.slots, Link(), small.prefilled)
    resident, copying, avsg = settings
    assert different == 0 and resident.rows == 0
    assert copying.rows == 12 * 2 * small.k and 0 < avsg.rows < copying.rows
    assert all(0 < setting.gather < sum(setting.seconds) for setting in settings)


def test_a_slow_link_slows_a_step_by_its_bytes(small):
    link = Link(gigabytes_per_second=0.01, latency_us=500)
    settings, different = measure(small.model, small.text, small.prompt, 4, small.slots, link, small.prefilled)
    assert different == 0
    needed = 2 * link.seconds(small.k * 1152)
    assert settings[1].gather >= needed and min(settings[1].seconds) >= needed


def test_a_link_waits_for_latency_and_bytes():
    begin = time.perf_counter()
    Link(1.0, 200.0).wait(1_000_000, begin)
    assert time.perf_counter() - begin >= 0.0012
    assert Link(1.0, 200.0).seconds(0) == 0 and Link().seconds(1 << 30) == 0
    assert (str(Link()), str(Link(25.0))) == ("own memory", "25 GB/s")


@pytest.mark.parametrize("repeat", [0.0, 0.9])
def test_a_text_repeats_as_often_as_asked(repeat):
    from avsg_mlx_lm.harness.model import random_text

    text = random_text(2000, repeat=repeat)
    again = sum(a == b for a, b in zip(text, text[1:])) / len(text)
    assert abs(again - repeat) < 0.05
