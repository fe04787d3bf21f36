#!/usr/bin/env python3
"""Measures the tables of docs/benchmarks.md, "Matching" and "A step in a server", on this machine and prints them.

    docs/matching.py TRACE... [--program target/release/avsg] [--runs 3]

Every figure is the median over the runs. The contenders of a run take turns, so a ratio holds on a loaded machine, and a time
does not. A machine that the CPU lacks is left out.
"""

import argparse
import itertools
import json
import math
import pathlib
import statistics
import subprocess

MACHINES = ["avx512", "avx2", "neon"]
RULE = ["--lifetime", "constant:127"]
# (B, N_q, options of the run)
SERVERS = [(1, 1, []), (8, 1, []), (64, 1, ["--steps", "20"]), (1, 4, []), (8, 4, []), (64, 4, ["--steps", "8"])]


def bench(kind, program, trace, *options):
    """The rows of `avsg bench KIND`, or none if the CPU lacks the machine."""
    command = [program, "bench", kind, trace, *RULE, *options, "--json", "-"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode and "this CPU has" in done.stderr:
        return []
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)["rows"]


def median(rows, value):
    return statistics.median(value(row) for row in rows)


def single(program, traces, runs):
    """The medians for one request: for each machine, K and S a list over the traces of (us, ratios)."""
    cells = {}
    for machine, k, slots in itertools.product(MACHINES, (256, 2048), (2048, 8192)):
        for trace in traces:
            all_runs = [
                {row["what"]: row["median_us"] for row in bench("match", program, trace, "--k", str(k), "--slots", str(slots),
                                                                "--machine", machine)}
                for _ in range(runs)
            ]
            if not all(all_runs):
                break
            own, *others = "AVSG, constant:127", "exact LRU by a linked list", "the step before, by sort and merge"
            ratios = [median(all_runs, lambda run: run[other] / run[own]) for other in others]
            cells.setdefault((machine, k, slots), []).append((median(all_runs, lambda run: run[own]), *ratios))
    return cells


def server(program, trace, requests, tokens, options):
    """The us per request and layer of each row of `avsg bench step` with 61 layers, plans alone."""
    rows = bench("step", program, trace, "--k", "2048", "--slots", "8192", "--threads", "1", "--plans-only",
                 "--requests", str(requests), "--tokens", str(tokens), *options)
    return {(row["what"], row["layers"]): row["us_per_request"] for row in rows}


def servers(program, traces, runs):
    """For each B and N_q a list over the traces of (cold plan, warm plan, tables read, ratios to lru_resident_compact)."""
    cells = {}
    for requests, tokens, options in SERVERS:
        for trace in traces:
            all_runs = [server(program, trace, requests, tokens, options) for _ in range(runs)]
            plan, lru = ("AVSG: plan", 61), ("lru_resident_compact", 61)
            per_token = ("AVSG, a table for each token: plan", 61) if tokens > 1 else plan
            times = [median(all_runs, lambda run: run[what])
                     for what in (plan, ("AVSG: plan", 1), ("a loop that reads the tables in order", 61))]
            ratios = [median(all_runs, lambda run: run[lru] / run[own]) for own in (plan, per_token)]
            cells.setdefault((requests, tokens), []).append((*times, *ratios))
    return cells


def line(*cells):
    print("| " + " | ".join(map(str, cells)) + " |")


def head(*cells):
    line(*cells)
    line(*["---"] * len(cells))


def spread(values):
    """The geometric mean and the worst."""
    return f"{math.exp(statistics.fmean(map(math.log, values))):.2f} ({min(values):.2f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", nargs="+")
    parser.add_argument("--program", default=pathlib.Path(__file__).resolve().parent.parent / "target/release/avsg")
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    arguments = (options.program, options.traces, options.runs)
    head("machine", "K", "S", "us on each trace", "exact LRU, mean (worst)", "sort and merge, mean (worst)")
    for (machine, k, slots), cells in single(*arguments).items():
        us, lru, pointers = zip(*cells)
        line(machine, k, slots, " / ".join(f"{t:.2f}" for t in us), spread(lru), spread(pointers))
    print()
    head("B", "N_q", "plan with 61 tables per request, us on each trace", "with one", "tables read in order",
         "lru_resident_compact beside a table per request, mean (worst)", "beside a table per token")
    for (requests, tokens), cells in servers(*arguments).items():
        plan, warm, read, ratio, per_token = zip(*cells)
        shown = [" / ".join(f"{t:.1f}" for t in times) for times in (plan, warm, read)]
        line(requests, tokens, *shown, spread(ratio), spread(per_token))


if __name__ == "__main__":
    main()
