"""Examples in the documents run as printed, in order, and print what they say."""

import io
import re
from contextlib import redirect_stdout
from pathlib import Path

import pytest
from small_worlds import one_thread

__all__ = ["one_thread"]

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ANSWER = re.compile(r"((?:^# .*\n?)+)\Z", re.MULTILINE)


def blocks_of(name):
    return FENCE.findall((ROOT / name).read_text(encoding="utf-8"))


def play(name, folder, monkeypatch):
    """Run the blocks of a document in one interpreter; what each printed, and what it says."""
    monkeypatch.chdir(folder)
    names, played = {"__name__": "__example__"}, []
    for number, block in enumerate(blocks_of(name)):
        printed = io.StringIO()
        with redirect_stdout(printed):
            exec(compile(block, f"{name}, block {number}", "exec"), names)
        stated = ANSWER.search(block)
        lines = stated.group(1).splitlines() if stated else []
        played.append((printed.getvalue(), "".join(line[2:] + "\n" for line in lines)))
    return played


def test_the_script_of_the_readme_works_as_printed(tmp_path, monkeypatch):
    played = play("README.md", tmp_path, monkeypatch)
    assert played
    assert any(printed for printed, _ in played)


@pytest.mark.parametrize("name", ["docs/data.md"])
def test_the_examples_print_what_the_document_says(name, tmp_path, monkeypatch):
    played = play(name, tmp_path, monkeypatch)
    assert len(played) >= 5
    for printed, stated in played:
        assert printed == stated


def test_other_documents_are_at_least_python():
    for path in sorted(ROOT.glob("docs/**/*.md")):
        for number, block in enumerate(blocks_of(path.relative_to(ROOT))):
            compile(block, f"{path.name}, block {number}", "exec")
