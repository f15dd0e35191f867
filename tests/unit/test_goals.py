"""H4: every goal that calls itself tested has a test that names it, and no test names another."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROW = re.compile(r"^\| ([SDFPWH]\d+) \| .* \| (.*) \|$", re.MULTILINE)
NAMED = re.compile(r"(?<![A-Za-z0-9_.])([SDFPWH]\d{1,2})(?![A-Za-z0-9_.])|_([sdfpwh]\d{1,2})\(")


def goals():
    return dict(ROW.findall((ROOT / "docs/goals.md").read_text(encoding="utf-8")))


def named(text):
    """Ids in the sentences and names of a test file; code such as `p1 = ...` is not meant."""
    words = re.findall(r'"""(.*?)"""|#(.*)$|def (test_\w+\()', text, re.MULTILINE | re.DOTALL)
    return {
        (big or small).upper() for part in words for p in part for big, small in NAMED.findall(p)
    }


def test_every_goal_that_is_tested_is_named_by_a_test_h4():
    files = [path for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__)]
    seen = set().union(*(named(path.read_text(encoding="utf-8")) for path in files)) | {"H4"}
    stated = goals()
    assert len(stated) > 30
    missing = {goal for goal, state in stated.items() if state.startswith("tested")} - seen
    assert missing == set()


def test_no_test_names_a_goal_that_is_not_there():
    unknown = {}
    for path in (ROOT / "tests").rglob("test_*.py"):
        if strangers := named(path.read_text(encoding="utf-8")) - set(goals()):
            unknown[path.name] = strangers
    assert unknown == {}
