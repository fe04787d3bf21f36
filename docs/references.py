#!/usr/bin/env python3
"""Checks that everything that the repository cites exists: docs/references.py

In Markdown: links to files and headings, paths in code style, and source files of a link that names an item.
In sources: citations of the paper have numbers that the paper has, and nothing outside the repository is cited.
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FILES = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, text=True,
                       stdout=subprocess.PIPE, check=True).stdout.split()
FOLDERS = {str(parent) for name in FILES for parent in pathlib.Path(name).parents}
EQUATIONS, ALGORITHMS = 18, 4
# What a reader cannot open.
OUTSIDE = re.compile(r"\bdesign\.md\b|\bfacts page\b|(?<!\w)§|\bissue #?\d+\b|\.\./shared", re.IGNORECASE)
faults = []


def fault(name, number, text):
    faults.append(f"{name}:{number}: {text}")


def exists(path):
    path = path.rstrip("/")
    if path in FOLDERS or path in FILES:
        return True
    return any(pathlib.PurePath(name).match(path) for name in FILES) if "*" in path else False


def anchors(name):
    """The anchors of a page's headings, as GitHub makes them."""
    heads = re.findall(r"^#+ (.*)$", (ROOT / name).read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def markdown(name):
    folder, inside = pathlib.PurePath(name).parent, False
    for number, line in enumerate((ROOT / name).read_text().splitlines(), 1):
        if line.startswith("```"):
            inside = not inside
        if inside:
            continue
        for text, target in re.findall(r"\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)", line):
            if target.startswith(("http:", "https:")):
                continue
            path, _, anchor = target.partition("#")
            whole = str(pathlib.PurePath(*pathlib.Path(ROOT / folder / path).resolve().relative_to(ROOT).parts)) if path else name
            if not exists(whole):
                fault(name, number, f"{target} does not exist")
            elif anchor and anchor not in anchors(whole):
                fault(name, number, f"{whole} has no heading #{anchor}")
            item = re.fullmatch(r"`(?:.*::)?(\w+)!?`", text)
            if item and whole.endswith((".rs", ".h", ".in", ".cpp")) and item[1] not in (ROOT / whole).read_text():
                fault(name, number, f"{whole} does not name {item[1]}")
        for code in re.findall(r"`([^`]+)`", line):
            path = code.split(":")[0] if re.fullmatch(r"[\w./*{},-]+(:\d+)?", code) else ""
            first = path.split("/")[0]
            if "/" in path and first in {p.split("/")[0] for p in FILES} and "{" not in path and not exists(path):
                fault(name, number, f"`{path}` does not exist")


def source(name):
    for number, line in enumerate((ROOT / name).read_text().splitlines(), 1):
        for match in OUTSIDE.finditer(line):
            fault(name, number, f"{match[0]!r} is not in this repository")
        for kind, last in ((r"Eq\.", EQUATIONS), (r"Alg(?:\.|orithm)", ALGORITHMS)):
            for cited in re.findall(rf"\b{kind} (\d+)", line):
                if not 1 <= int(cited) <= last:
                    fault(name, number, f"{cited}: the paper has 1 to {last} of these")


def main():
    for name in FILES:
        if name.endswith(".md") and name != "CHANGELOG.md":
            markdown(name)
        if name.endswith((".rs", ".h", ".in", ".cpp", ".c", ".py", ".sh", ".md")) and name != "docs/references.py":
            source(name)
    if faults:
        sys.exit("\n".join(faults))
    print(f"docs/references.py: {len(FILES)} files, no dangling reference")


main()
