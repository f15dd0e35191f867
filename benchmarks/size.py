"""How large is the package, and how much of it does one command pass through?

python -m benchmarks.size                # lines, modules, classes, helpers with one caller
python -m benchmarks.size --fit          # and what `etips fit` on a small table reaches
"""

import argparse
import ast
import sys
import tempfile
import threading
from collections import Counter, defaultdict
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import numpy as np

PACKAGE = Path(__file__).parents[1] / "etips"
Function = ast.FunctionDef | ast.AsyncFunctionDef


def folders() -> dict[str, Counter]:
    """Lines, modules and classes of each folder."""
    counts = defaultdict(Counter)
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).parts
        text = path.read_text(encoding="utf-8")
        nodes = list(ast.walk(ast.parse(text)))
        classes = sum(isinstance(node, ast.ClassDef) for node in nodes)
        folder = parts[0] if len(parts) > 1 else "top"
        counts[folder].update(lines=text.count("\n"), modules=1, classes=classes)
    return counts


def helpers() -> tuple[int, int]:
    """Private functions, and how many of them are used by one function alone."""
    users, defined = defaultdict(set), []
    for path in PACKAGE.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        _collect(tree, str(path), path, users, defined)
    alone = sum(len(users[name] - {own}) == 1 for name, own in defined)
    return len(defined), alone


def _collect(node, scope, path, users, defined):
    for child in ast.iter_child_nodes(node):
        inner = scope
        if isinstance(child, Function):
            inner = f"{path}:{child.name}:{child.lineno}"
            if child.name.startswith("_") and not child.name.startswith("__"):
                defined.append((child.name, inner))
        if isinstance(child, ast.Name):
            users[child.id].add(scope)
        elif isinstance(child, ast.Attribute):
            users[child.attr].add(scope)
        _collect(child, inner, path, users, defined)


def reach() -> tuple[int, int]:
    """Functions called and modules imported by `etips fit`, in this process alone."""
    called = set()

    def look(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(str(PACKAGE)):
            code = frame.f_code
            if not code.co_name.startswith("<"):
                called.add((code.co_filename, code.co_firstlineno))

    with tempfile.TemporaryDirectory() as place:
        table = Path(place) / "log.csv"
        rng = np.random.default_rng(0)
        rows = rng.normal(size=(600, 4))
        action = rng.integers(0, 3, size=600)
        loss = (rows[:, 0] + action * rows[:, 1] + rng.normal(size=600) > 0).astype(int)
        lines = ["a,b,c,d,action,loss"]
        lines += [
            ",".join(map(str, [*x, k, y])) for x, k, y in zip(rows, action, loss, strict=True)
        ]
        table.write_text("\n".join(lines) + "\n")
        from etips.cli.entry import main

        sys.argv = ["etips", "fit", str(table), "--action", "action", "--loss", "loss"]
        sys.argv += ["--out", str(Path(place) / "run")]
        threading.setprofile(look)
        sys.setprofile(look)
        try:
            with redirect_stdout(StringIO()):
                main()
        except SystemExit as end:
            if end.code:
                raise
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
    return len(called), sum(name.split(".")[0] == "etips" for name in sys.modules)


def main() -> None:
    """Print what was counted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fit", action="store_true", help="what `etips fit` reaches, too")
    options = parser.parse_args()
    counts = folders()
    for folder, count in counts.items():
        print(f"{folder:12}", *(f"{kind} {count[kind]:6}" for kind in count))
    print(f"{'sum':12}", *(f"{k} {n:6}" for k, n in sum(counts.values(), Counter()).items()))
    total, alone = helpers()
    print(f"private functions {total}, with one caller {alone} ({alone / total:.0%})")
    if options.fit:
        functions, modules = reach()
        print(f"`etips fit` calls {functions} functions and imports {modules} modules of ours")


if __name__ == "__main__":
    main()
