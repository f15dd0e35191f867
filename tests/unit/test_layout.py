"""The shape of the package: how large it is as a whole, how long its parts are."""

import ast
from collections import Counter
from pathlib import Path

import etips

PACKAGE = Path(etips.__file__).parent
TESTS = Path(__file__).parent
ROOT = TESTS.parents[1]
MODULES = sorted(PACKAGE.rglob("*.py"))
LONGEST_MODULE, LONGEST_FUNCTION = 800, 60
PACKAGE_LINES, PACKAGE_MODULES, TEST_LINES = 59017, 314, 49520
DOCUMENT_WORDS = 48893
VAGUE = {"utils", "helpers", "common", "base", "misc"}


def place(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def n_lines(files) -> int:
    return sum(len(path.read_text().splitlines()) for path in files)


def test_the_package_stays_within_its_budget():
    """What was reached. A deletion lowers it; only a new capability, named in its commit, adds."""
    assert n_lines(MODULES) <= PACKAGE_LINES
    assert len(MODULES) <= PACKAGE_MODULES
    assert n_lines(TESTS.parent.rglob("*.py")) <= TEST_LINES


def test_documents_stay_within_their_budget():
    """Words of what is written for readers; what is measured stands once, in a table."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    assert sum(len(page.read_text(encoding="utf-8").split()) for page in pages) <= DOCUMENT_WORDS


def functions(path: Path) -> list[ast.FunctionDef]:
    return [n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.FunctionDef)]


def test_no_module_is_too_long():
    lengths = {place(path): len(path.read_text().splitlines()) for path in MODULES}
    assert {name: n for name, n in lengths.items() if n > LONGEST_MODULE} == {}


def body_lines(function: ast.FunctionDef) -> int:
    """Lines from the signature to the end, the docstring apart."""
    first = function.body[0]
    documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    text = first.end_lineno - first.lineno + 1 if documented else 0
    return function.end_lineno - function.lineno + 1 - text


def test_no_function_is_too_long():
    lengths = {
        f"{place(path)}::{f.name}": body_lines(f) for path in MODULES for f in functions(path)
    }
    assert {name: n for name, n in lengths.items() if n > LONGEST_FUNCTION} == {}


def test_folders_are_at_most_three_deep():
    assert [place(path) for path in MODULES if len(path.relative_to(PACKAGE).parts) > 3] == []


def test_no_module_has_a_name_that_says_nothing():
    assert {place(path) for path in MODULES if path.stem in VAGUE} == set()


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
