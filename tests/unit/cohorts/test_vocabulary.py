"""Engines, rules and data set know no table and no column of any database.

A name can be meant as a table or a column where it is a string or an attribute; everywhere else it
is a word like any other. Words that the rules have for themselves are theirs, so a database whose
columns are called `died` or `rank` needs no entry here.
"""

import ast
import re
from pathlib import Path

import pytest

import etips.cohorts
from etips.cohorts.databases import DATABASES

FOLDER = Path(etips.cohorts.__file__).parent
NEUTRAL = [
    *(p for part in ("engines", "sepsis3", "dataset") for p in sorted(FOLDER.glob(f"{part}/*.py"))),
    FOLDER / "build.py",
]
# What the rules ask of a database: every word in them is one of the rules.
SPOKEN = [FOLDER / "sepsis3" / "events.py", FOLDER / "sepsis3" / "variables.py"]
# Words of Python and of the libraries, met as strings or attributes.
LIBRARIES = {
    "code", "date", "disk", "error", "hour", "memory", "open", "port", "random", "shape", "style",
    "type",
}  # fmt: skip
SYSTEMS = {"mimic", "carevue", "metavision", *DATABASES}


def words(text):
    return set(re.findall(r"[a-z_0-9]+", text.lower()))


def meant(source):
    """Words of a module that can be meant as a table or a column.

    Those of strings without a blank or with a query in them, and attributes that are not called.
    """
    tree = ast.parse(source)
    nodes = list(ast.walk(tree))
    unread = {id(n.value) for n in nodes if isinstance(n, ast.Expr)}  # docstrings
    unread |= {id(n.func) for n in nodes if isinstance(n, ast.Call)}  # methods
    found = set()
    for node in nodes:
        if id(node) in unread:
            continue
        if isinstance(node, ast.Attribute):
            found.add(node.attr.lower())
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
            if " " not in text.strip() or re.search(r"\b(SELECT|FROM|JOIN|WHERE|BY)\b", text):
                found |= words(text)
    return found


def bound(source):
    """Names that a module gives to its own variables, arguments, columns and functions."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.arg | ast.keyword) and node.arg:
            names.add(node.arg)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
    return {name.lower().strip("_") for name in names}


def names_of(database):
    columns = {column for table in database.layout.tables.values() for column in table}
    return set(database.layout.tables) | columns


def own_words():
    """Words of the rules, whoever else may use them."""
    own = set().union(*(bound(path.read_text()) for path in NEUTRAL))
    return own.union(LIBRARIES, *(words(path.read_text()) for path in SPOKEN))


OWN = own_words()
GIVEAWAYS = set().union(*(names_of(database) for database in DATABASES.values())) - OWN


@pytest.mark.parametrize("path", NEUTRAL, ids=lambda path: path.relative_to(FOLDER).as_posix())
def test_no_name_of_a_table_or_column_occurs(path):
    source = path.read_text()
    assert meant(source) & GIVEAWAYS == set()
    source = source.replace("from etips.cohorts.mimic.extraction import Extraction", "")
    assert words(source) & SYSTEMS == set()


def test_the_rules_share_these_words_with_mimic3_and_no_others():
    """A name of MIMIC-III that became a variable of the rules would no longer be looked for."""
    assert names_of(DATABASES["mimic3"]) & OWN == {
        "charttime", "drug", "error", "gender", "patients", "rate", "value",
    }  # fmt: skip
    assert len(NEUTRAL) > 15
