"""A results document held against its schema, `results.schema.json`; what is not ours is refused.

Only the words of JSON Schema that our schema uses are understood here.
"""

import json
import math
from collections.abc import Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from etips.errors import FileError

LARGEST = 1e300  # of a number; JSON's whole numbers have no end
_LIMIT = 64 * 2**20  # bytes; aggregates of any study stay far below
_KINDS: Mapping[str, type | tuple[type, ...]] = {
    "object": Mapping,
    "array": list,
    "string": str,
    "boolean": bool,
    "null": type(None),
    "integer": int,
    "number": (int, float),
}
_LATER = ("gain", "atenp", "sensitivity", "notes")
"""Fields of a policy that the contract does not ask for; null where somebody else left them out."""


def read_results(path: Path) -> dict[str, Any]:
    """A results document from a file, checked.

    Args:
        path: A `results.json`, or a folder that holds one.
    """
    file = path / "results.json" if path.is_dir() else path
    if not file.is_file():
        fix = "Run etips evaluate first." if path.is_dir() else ""
        raise FileError(str(file), "is missing", fix=fix)
    if file.stat().st_size > _LIMIT:
        raise FileError(str(file), "is too large for results.json")
    try:
        document = json.loads(file.read_bytes(), parse_constant=_refuse_constant)
    except (OSError, ValueError, RecursionError) as error:
        raise FileError(str(file), "is not valid JSON") from error
    return check_results(document, where=str(file))


def check_results(
    document: object, *, where: str = "results", complete: bool = False
) -> dict[str, Any]:
    """The document if it is one of ours; else a refusal that names the first field that is not.

    Args:
        document: As JSON gives it.
        where: What to call it in a refusal.
        complete: Refuse it also if anything is missing that a report should hold (goal H1).
    """
    found = document if complete else _filled(document)
    schema = _schema()
    fault = _fault(found, schema, schema["$defs"], "")
    if fault is None and isinstance(found, Mapping):
        fault = _inconsistent(found, complete=complete)
    if fault is not None or not isinstance(found, Mapping):
        raise FileError(where, f"is not a results document of etips: {fault}")
    return dict(found)


@cache
def _schema() -> dict[str, Any]:
    text = resources.files("etips.results").joinpath("results.schema.json").read_text("utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def _filled(document: object) -> object:
    if not isinstance(document, Mapping):
        return document
    methods = document.get("methods")
    if isinstance(methods, list):
        empty = dict.fromkeys(_LATER)
        methods = [{**empty, **m} if isinstance(m, Mapping) else m for m in methods]
    return {"exhibits": None, **document, "methods": methods}


def _fault(
    value: object, schema: Mapping[str, Any], defs: Mapping[str, Any], at: str
) -> str | None:
    """What is wrong with `value`, or None; `at` says where it stands, names of ours only."""
    place = at or "the whole"
    if "$ref" in schema:
        return _fault(value, defs[schema["$ref"].rpartition("/")[2]], defs, at)
    if "enum" in schema:
        known = any(value is option or value == option for option in schema["enum"])
        return None if known and not isinstance(value, int) else f"{place} has a value not allowed"
    if "anyOf" in schema:
        faults = [_fault(value, option, defs, at) for option in schema["anyOf"]]
        return None if None in faults else faults[0]
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    if not any(_is(value, kind) for kind in kinds):
        return f"{place} must be {' or '.join(kinds)}"
    if isinstance(value, Mapping):
        return _fault_inside(value, schema, defs, at)
    if isinstance(value, list) and "items" in schema:
        places = (_fault(v, schema["items"], defs, f"{at}[{i}]") for i, v in enumerate(value))
        return next((fault for fault in places if fault is not None), None)
    return None


def _fault_inside(
    value: Mapping[str, Any], schema: Mapping[str, Any], defs: Mapping[str, Any], at: str
) -> str | None:
    known, rest = schema.get("properties", {}), schema.get("additionalProperties")
    for name in schema.get("required", ()):
        if name not in value:
            return f"{at or 'the whole'} lacks {name}"
    for name, inside in value.items():
        rule = known.get(name, rest)
        if rule is None:
            continue
        fault = _fault(inside, rule, defs, f"{at}.{name}".lstrip(".") if name in known else at)
        if fault is not None:
            return fault
    return None


def _is(value: object, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    if not isinstance(value, _KINDS[kind]):
        return False
    if isinstance(value, int | float):
        return (
            math.isfinite(value) and abs(value) < LARGEST
            if isinstance(value, float)
            else (abs(value) < LARGEST)
        )
    return True


def _inconsistent(document: Mapping[str, Any], *, complete: bool) -> str | None:
    """What a schema cannot say: numbers with a verdict, columns of one length."""
    for place, method in enumerate(document["methods"]):
        if method["estimates"] and method["verdict"] is None:
            return f"methods[{place}] has estimates but no verdict"
    for place, table in enumerate(document.get("tables", ())):
        if any(len(row) != len(table["columns"]) for row in table["rows"]):
            return f"tables[{place}] has rows that do not fit its columns"
    for place, chart in enumerate(document.get("charts", ())):
        for series in chart["series"]:
            lengths = {len(series[name] or series["y"]) for name in ("x", "y", "error")}
            if len(lengths) > 1:
                return f"charts[{place}] has series of unequal length"
    exhibits = document["exhibits"]
    if exhibits is None:
        return "exhibits are missing" if complete else None
    return _uneven(exhibits)


def _uneven(exhibits: Mapping[str, Any]) -> str | None:
    actions, weights = exhibits["actions"], exhibits["weights"]
    columns = ("names", "n_logged", "logged_share", "recommended_share", "effective_n")
    lengths = {len(actions[name]) for name in columns} | {
        len(actions["supported_share"] or actions["names"])
    }
    grid = actions["grid"]
    if grid is not None:
        if not (grid["n_columns"] > 0 and grid["n_rows"] > 0):
            return "exhibits.actions.grid must have rows and columns"
        lengths.add(grid["n_rows"] * grid["n_columns"])
    if len(lengths) > 1:
        return "exhibits.actions has columns of unequal length"
    if len({len(weights[name]) for name in ("edges", "decisions", "weight")}) > 1:
        return "exhibits.weights has columns of unequal length"
    return None


def _refuse_constant(text: str) -> float:
    raise ValueError(text)
