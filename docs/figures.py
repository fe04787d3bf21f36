#!/usr/bin/env python3
"""Writes the tables in docs/ and research/ that do not depend on the machine.

    docs/figures.py            runs the commands and rewrites the tables
    docs/figures.py --check    fails if a table differs from what its command says now

A table stands between the lines `<!-- figures: NAME -->` and `<!-- end -->`. `research/docs/paper-results.md` is the whole output of one command.
"""

import functools
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def output(*arguments, program="avsg-cli"):
    """The standard output of a subcommand."""
    command = ["cargo", "run", "--release", "--locked", "--quiet", "-p", program, "--", *arguments]
    return subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True, text=True).stdout


@functools.cache
def avsg(*arguments):
    """The JSON output of a subcommand."""
    return json.loads(output(*arguments, "--json", "-"))


@functools.cache
def research(*arguments):
    """The JSON output of a subcommand of avsg-research."""
    return json.loads(output(*arguments, "--json", "-", program="avsg-research"))


def table(heads, rows):
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join("| " + " | ".join(str(cell) for cell in line) + " |\n" for line in lines)


def goal():
    """Stage One in relation to the modelled paper kernel over all ranges, for one request and for a full batch."""
    heads = ["requests", "part", "AVSG, us", "paper's kernel, us", "AVSG / paper", "smallest", "largest", "goal 0.5"]
    return table(heads, [
        [n, g["of"], f"{g['value']['ours_us']:.1f}", f"{g['value']['paper_us']:.1f}",
         *(f"{g[which]['ratio']:.2f}" for which in ("value", "smallest", "largest")), "met" if g["met"] else "missed"]
        for n in ("1", "40") for g in research("estimate", "--requests", n)["goals"]
    ])


def ranges():
    """Stage One in relation to the modelled paper kernel at both ends of each range."""
    one, full = ({r["constant"]: r for r in research("estimate", "--requests", n)["ranges"]} for n in ("1", "40"))
    heads = ["constant", "range", "1 request, low end", "1 request, high end", "40 requests, low end",
             "40 requests, high end"]

    def cells(rows, name):
        return [f"{rows[name][end]['ratio']:.2f}" if name in rows else "-" for end in ("low", "high")]

    return table(heads, [
        [name, f"{r['range'][0]:g} to {r['range'][1]:g} {r['unit']}", *cells(one, name), *cells(full, name)]
        for name, r in one.items()
    ])


def variants():
    """What the optimisations save."""
    rows = research("estimate", "--requests", "1")["variants"]
    return table(["variant", "Stage One, us", "saved by what is missing, us"],
                 [[v["variant"], f"{v['stage_one_us']:.1f}", f"{v['saves_us']:.1f}"] for v in rows])


def stated():
    """The paper's measured figures beside the model."""
    def us(value):
        return "" if value is None else f"{value:.1f}"
    rows = research("estimate", "--requests", "1")["points"]
    return table(["figure", "K", "S", "the paper measured, us", "the model says, us", "error", "AVSG by the model, us"], [
        [p["what"], p["k"], p["slots"], us(p["paper_us"]), us(p["model_us"]), f"{p['error_percent']:+.0f} %",
         us(p.get("ours_us"))]
        for p in rows
    ])


def lifetime():
    """Hit rates of the committed trace by table and rule."""
    trace, sizes = "tests/data/nomicon-4k-k256.npz", (256, 512, 1024)
    answer = avsg("bench", "lifetime", trace, "--slots", ",".join(map(str, sizes)))
    wanted = [
        ("`paper`, L = 16", "paper", "constant", 16.0),
        ("`wide`, constant", "wide", "constant", 127.0),
        ("`wide`, frequency 0.87", "wide", "frequency", 0.87),
    ]
    bounds = [("exact LRU", "lru"), ("Belady's optimum", "opt")]

    def rate(slots, kind, rule, value):
        key = (slots, kind, rule, value)
        rates = [r["hit_rate"] for r in answer["rows"] if (r["slots"], r["table"], r["rule"], r["value"]) == key]
        if len(rates) != 1:
            raise SystemExit(f"{len(rates)} rows are {key}")
        return f"{rates[0]:.2f}"

    lines = [[name, *(rate(s, *which) for s in sizes)] for name, *which in wanted]
    lines += [[name, *(f"{s[key]:.2f}" for s in answer["scale"])] for name, key in bounds]
    return table(["policy", *(f"S = {s}" for s in sizes)], lines)


def reuse():
    """The paper's synthetic workload: the table `paper` beside its figures, and `wide` beside `paper` and exact LRU."""
    answer = avsg("bench", "reuse")
    other = avsg("bench", "reuse", "--primes", "7919,17")

    def mean(slots, difference):
        values = [difference(row) for row in answer["rows"] if row["slots"] == slots]
        return f"{sum(values) / len(values):.1f}"

    far = max(abs(row["wide_constant"] - row["lru"]) for row in answer["rows"])
    return table(["difference in percentage points", "value"], [
        ["`paper` and the paper's 18 figures, root mean square", f"{answer['rms']:.2f}"],
        ["the same with `--primes 7919,17`", f"{other['rms']:.2f}"],
        *([f"`wide` with constant lifetimes above `paper`, mean at S = {slots}",
           mean(slots, lambda row: row["wide_constant"] - row["paper"])] for slots in (4096, 8192)),
        ["`wide` with constant lifetimes and exact LRU, largest", f"{far:.2f}"],
    ])


def policies():
    """Hit rates of the committed trace by policy."""
    text = output("compare", "tests/data/nomicon-4k-k256.npz", "--format", "markdown")
    return "".join(line for line in text.splitlines(keepends=True) if line.startswith("|"))


def settings(report, figures):
    """The figures of a serving model: one line per figure, one column per setting, differences from the paper in brackets."""
    def cell(setting, name, decimals):
        value, measured = setting[name], setting.get("measured", {}).get(name)
        note = "" if measured is None else f" ({measured:.{decimals}f}, {100 * (value / measured - 1):+.1f} %)"
        return f"{value:.{decimals}f}{note}"
    return [[label, *(cell(s, name, decimals) for s in report["settings"])] for label, name, decimals in figures]


def serving():
    """The model of the paper's deployment; in brackets the paper's figure and the difference."""
    figures = [("TTFT, s", "ttft_s", 2), ("TPOT, ms", "tpot_ms", 1), ("TPOT, 99th percentile, ms", "tpot_p99_ms", 1), ("E2E, s", "e2e_s", 1),
               ("output tok/s", "output_tok_s", 1), ("requests per second", "request_rate", 2), ("wait for memory, s", "wait_s", 1),
               ("requests of a rank, mean", "running", 2)]
    return table(["", "No Offload", "KV Offload", "AVSG"], settings(avsg("serve"), figures))


def calibration():
    """The constants that the paper's figures give."""
    rows = avsg("serve", "--calibrate")["calibration"]["constants"]
    return table(["constant", "value", "follows from", "the paper", "the model"],
                 [[f"`{c['option']}`", f"{c['value']:.2f}", f"{c['setting']}: {c['figure']}", f"{c['measured']:.2f}", f"{c['modelled']:.2f}"]
                  for c in rows])


def what_if():
    """Changes of the paper's deployment."""
    lines = [("as in the paper", []), ("S = 4096 (hit rate 88.72 %)", ["--slots", "4096", "--hit-rate", "88.72"]),
             ("concurrency 128", ["--concurrency", "128"]), ("no drafts (`--tokens 1`)", ["--tokens", "1"]),
             ("prompts of 24000 tokens", ["--prompt", "24000"])]
    def line(name, options):
        plain, offload, own = avsg("serve", *options)["settings"]
        return [name, *(f"{s['tpot_ms']:.1f} / {s['output_tok_s']:.0f}" for s in (plain, offload, own)), f"{own['hbm_peak_percent']:.1f}"]
    heads = ["deployment", "No Offload: TPOT, ms / tok/s", "KV Offload", "AVSG", "AVSG: HBM with most buffers, %"]
    return table(heads, [line(*one) for one in lines])


# Pages that a command writes as a whole.
PAGES = {"paper-results.md": ("paper", "tests/data/nomicon-4k-k256.npz")}
TABLES = {f.__name__: f for f in (goal, ranges, variants, stated, lifetime, reuse, policies, serving, calibration, what_if)}


def main():
    check = sys.argv[1:] == ["--check"]
    if sys.argv[1:] and not check:
        raise SystemExit(f"argument is {sys.argv[1]}, but the only option is --check")
    pattern = re.compile(r"(<!-- figures: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
    stale = []
    for page in sorted([*ROOT.glob("docs/*.md"), *ROOT.glob("research/**/*.md")]):
        text = page.read_text()
        if page.name in PAGES:
            fresh = output(*PAGES[page.name], program="avsg-research")
        else:
            fresh = pattern.sub(lambda m: m[1] + "\n" + TABLES[m[2]]() + "\n" + m[3], text)
        if fresh != text:
            stale.append(page.name)
            if not check:
                page.write_text(fresh)
    if check and stale:
        raise SystemExit(f"{', '.join(stale)}: tables are not what the commands say; run docs/figures.py")
    print(f"docs/figures.py: {len(stale)} pages {'rewritten' if stale else 'changed'}")


main()
