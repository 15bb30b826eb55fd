"""What documents show is what happens."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import List

import pytest
from given import SOURCE

import metronome
from metronome import Job

SDK = Path(__file__).parent.parent
GUIDE = SDK.parent.parent / "docs" / "guide" / "sdk.md"
PAGES = [SDK / "README.md", GUIDE]


def blocks(page: Path) -> List[str]:
    found = re.findall(r"^( *)```python\n(.*?)^ *```$", page.read_text(), re.MULTILINE | re.DOTALL)
    return [re.sub(f"^{indent}", "", code, flags=re.MULTILINE) for indent, code in found]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_first_example_of_a_page_runs_as_it_is(page: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("METRONOME_")}
    environment["PYTHONPATH"] = str(SOURCE)
    line = [sys.executable, "-c", blocks(page)[0]]
    said = subprocess.run(line, env=environment, capture_output=True, text=True, check=True, timeout=60)
    assert said.stdout == "4.00 after 1000 iterations\n"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_example_of_a_page_is_python(page: Path) -> None:
    for code in blocks(page):
        ast.parse(code)


def test_everything_that_the_guide_names_is_there() -> None:
    text = GUIDE.read_text()
    for name in set(re.findall(r"\bjob\.(\w+)", text)):
        assert hasattr(Job(metronome.Environment()), name), name
    for name in set(re.findall(r"`metronome\.(\w+)", text)) - {"huggingface"}:
        assert hasattr(metronome, name), name


def test_the_guide_names_everything_that_there_is() -> None:
    text = GUIDE.read_text()
    public = {name for name in dir(Job) if not name.startswith("_")}
    named = set(re.findall(r"\bjob\.(\w+)", text)) | set(re.findall(r"Job\.(\w+)", text))
    assert public <= named


@pytest.mark.parametrize("example", sorted((SDK / "examples").glob("*.py")), ids=lambda path: path.name)
def test_every_example_is_python_and_uses_what_there_is(example: Path) -> None:
    tree = ast.parse(example.read_text())
    of_job = [
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "job"
    ]
    for name in of_job:
        assert hasattr(Job(metronome.Environment()), name), name
