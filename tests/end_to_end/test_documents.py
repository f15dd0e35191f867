"""Examples in the documents run as printed, in order, and print what they say."""

import io
import re
from contextlib import redirect_stdout
from pathlib import Path

import pytest
from typer.main import get_command

from etips.cli.main import COMMANDS, app

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
    assert any("against the clinicians" in printed for printed, _ in played)
    page = (tmp_path / "report.html").read_text()
    assert page.startswith("<!doctype html>")
    assert play("README.md", tmp_path, monkeypatch) == played  # nothing is in the way
    assert "my rule" in page


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


DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted(ROOT.glob("docs/**/*.md")),
]
CALL = re.compile(
    r"^\s*(?:\$ )?etips (?P<command>[a-z]+)(?P<rest>(?:[^\n`#]*\\\n)*[^\n`#]*)", re.MULTILINE
)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_commands_in_the_documents_exist_with_their_options(path):
    """Lines that begin with `etips`; what stands in a sentence is a name, not a call."""
    group = get_command(app)
    for call in CALL.finditer(path.read_text(encoding="utf-8")):
        assert call["command"] in COMMANDS, call[0]
        known = group.get_command(None, call["command"]).params
        options = {"--help", *(name for own in known for name in own.opts)}
        assert set(re.findall(r"(?<=\s)--[a-z0-9-]+", call["rest"])) <= options, call[0]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_in_the_documents_lead_somewhere(path):
    text = path.read_text(encoding="utf-8")
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#\s]*)(#[^)\s]*)?\)", text):
        place = path.parent / target if target else path
        assert place.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.*)$", place.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor[1:] in {_anchor(heading) for heading in headings}, anchor


def _anchor(heading):
    """As GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def test_the_readme_lists_every_command():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert set(COMMANDS) <= set(re.findall(r"^\| `etips (\w+)", text, re.MULTILINE))
