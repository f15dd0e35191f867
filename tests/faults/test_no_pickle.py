"""F5: nothing in the package can run code that it finds in a file."""

import ast
import io
import pickle
from pathlib import Path

import pytest
from pickle_watch import PICKLES

import etips

PACKAGE = Path(etips.__file__).parent
MODULES = {"pickle", "_pickle", "cPickle", "joblib", "cloudpickle", "dill", "shelve", "marshal"}
CALLS = {"eval", "exec", "torch.load", "torch.save", "yaml.load", "yaml.unsafe_load"}


def dotted(node):
    """`a.b.c` of an expression, or nothing."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (left := dotted(node.value)):
        return f"{left}.{node.attr}"
    return ""


def forbidden(source):
    """Lines of a module that import or call what can run code from a file."""
    found = []
    for node in ast.walk(ast.parse(source)):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            names = [module, *(f"{module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Attribute | ast.Name):
            names = [dotted(node)]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names = [node.value] if node.value in MODULES else []  # import_module("pickle")
        elif isinstance(node, ast.keyword) and node.arg == "allow_pickle":
            safe = isinstance(node.value, ast.Constant) and node.value.value is False
            names = [] if safe else ["pickle"]
        for name in names:
            parts = name.removeprefix("builtins.").split(".")
            if parts[0] in MODULES or ".".join(parts) in CALLS or name.endswith(".pickle"):
                found.append(node.lineno)
    return sorted(found)


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda p: p.stem)
def test_f5_the_source_holds_no_way_to_unpickle_or_evaluate(path):
    """F5: pickle and kin, torch.load and save, np.load(allow_pickle), eval, exec, yaml.load."""
    assert forbidden(path.read_text()) == []


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "import joblib.numpy_pickle",
        "from cloudpickle import loads",
        "from dill import *",
        "import shelve as s",
        "import torch\ntorch.load('x')",
        "import torch\nsave = torch.save",
        "from torch import load",
        "import numpy as np\nnp.load('x', allow_pickle=True)",
        "import numpy as np\nnp.load('x', allow_pickle=flag)",
        "eval('1')",
        "run = exec",
        "import builtins\nbuiltins.eval('1')",
        "import yaml\nyaml.load('x')",
        "from importlib import import_module\nimport_module('pickle')",
        "import torch\ntorch.serialization.pickle.loads(b'')",
    ],
)
def test_f5_each_of_them_would_be_found(source):
    """F5: the watchman is awake."""
    assert forbidden(source) != []


def test_f5_what_is_allowed_is_not_found():
    """F5: and does not bark at friends."""
    assert forbidden("import numpy as np\nnp.load('x', allow_pickle=False)\nmodel.eval()") == []


def unpickle_as(filename):
    """Unpickle something from code that stands in `filename`, as the audit hook sees it."""
    content = pickle.dumps(io.BytesIO)
    code = compile("import pickle\npickle.loads(content)", filename, "exec")
    exec(code, {"content": content})


def test_f5_unpickling_from_the_package_is_noticed():
    """F5: the audit hook over the whole suite (conftest.py) sees what the source would hide."""
    before = len(PICKLES)
    unpickle_as(str(PACKAGE / "data" / "sly.py"))
    noticed = PICKLES[before:]
    del PICKLES[before:]
    assert [place.rsplit("/", 1)[1] for place in noticed] == ["sly.py:2"]


def test_f5_unpickling_elsewhere_is_none_of_our_business():
    """F5: pytest, torch or multiprocessing may do what they like on their own."""
    before = len(PICKLES)
    unpickle_as("/somewhere/else.py")
    assert len(PICKLES) == before
