"""The shape of the package: who has a test, how long things are, what is called what."""

import ast
import statistics
from collections import Counter
from pathlib import Path

import pytest

import etips
from etips.cohorts.databases import DATABASES

PACKAGE = Path(etips.__file__).parent
TESTS = Path(__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))
LONGEST_MODULE, LONGEST_FUNCTION, MEDIAN_MODULE = 400, 50, 140
VAGUE = {"utils", "helpers", "common", "base", "misc"}


def place(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def functions(path: Path) -> list[ast.FunctionDef]:
    return [n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.FunctionDef)]


def needs_a_test(path: Path) -> bool:
    """All but packages, commands, and modules that hold constants and nothing that runs."""
    inside = path.relative_to(PACKAGE)
    return not path.stem.startswith("__") and inside.parts[0] != "cli" and bool(functions(path))


def test_of(path: Path) -> Path:
    inside = path.relative_to(PACKAGE)
    return TESTS / inside.parent / f"test_{inside.name}"


test_of.__test__ = False


@pytest.mark.parametrize("path", [p for p in MODULES if needs_a_test(p)], ids=place)
def test_every_module_has_the_test_a_reader_would_guess(path):
    assert test_of(path).is_file(), f"{place(path)} lacks {test_of(path).relative_to(TESTS.parent)}"
    assert any(f.name.startswith("test_") for f in functions(test_of(path)))


def test_no_module_is_too_long():
    lengths = {place(path): len(path.read_text().splitlines()) for path in MODULES}
    assert {name: n for name, n in lengths.items() if n > LONGEST_MODULE} == {}
    assert statistics.median(lengths.values()) <= MEDIAN_MODULE


def test_no_function_is_too_long():
    long = {
        f"{place(path)}::{f.name}": f.end_lineno - f.lineno + 1
        for path in MODULES
        for f in functions(path)
        if f.end_lineno - f.lineno + 1 > LONGEST_FUNCTION
    }
    assert long == {}


def test_folders_are_at_most_three_deep():
    assert [place(path) for path in MODULES if len(path.relative_to(PACKAGE).parts) > 3] == []


def test_a_module_name_occurs_once():
    """Commands may be called like what they command, and databases have the same parts."""
    alike = {"cli", *DATABASES}
    names = Counter(
        p.stem for p in MODULES if not p.stem.startswith("__") and p.parent.name not in alike
    )
    assert {name for name, n in names.items() if n > 1} == set()
    assert not VAGUE & set(names)


def test_a_test_file_has_a_name_of_its_own():
    """pytest takes two of one name for the same module, where no `__init__.py` tells them apart."""
    files = [p for p in TESTS.parent.rglob("*.py") if not (p.parent / "__init__.py").exists()]
    names = Counter(p.name for p in files if p.name != "conftest.py")
    assert {name for name, n in names.items() if n > 1} == set()


def test_results_are_not_mappings_of_anything():
    """A misspelt key of a mapping is found by a user, a misspelt field by the type checker."""
    loose = ("Mapping[str, Any]", "dict[str, Any]")
    places = [
        f"{place(path)}:{number}"
        for path in MODULES
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if any(text in line for text in loose)
    ]
    assert places == []
