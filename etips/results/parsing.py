"""Results read back from JSON: typed, checked, refused in one line that never shows a value."""

import json
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from etips.choice_record import ChoiceRecord
from etips.errors import FileError
from etips.files.json_documents import read_document
from etips.results import comparison_result, exhibits, records, results, study_result
from etips.results.comparison_result import Comparison
from etips.results.results import Results
from etips.results.study_result import StudyResult

LARGEST = 1e300  # of a number; JSON's whole numbers have no end
_LIMIT = 64 * 2**20  # bytes; aggregates of any study stay far below
_FIELDS = frozenset(
    field.name
    for module in (comparison_result, exhibits, records, results, study_result)
    for kind in vars(module).values()
    if isinstance(kind, type) and is_dataclass(kind)
    for field in fields(kind)
)
"""A place in a refusal is made of these alone: a key of a mapping may be a person's name."""

_OF_A_STUDY = {field.name for field in fields(StudyResult)} - {f.name for f in fields(Results)}

T = TypeVar("T")
_adapter: Callable[[type], TypeAdapter[Any]] = cache(TypeAdapter)  # slow to make


def read_results(path: Path) -> Results:
    """Results from `results.json` or its folder; a `StudyResult` where a study wrote them."""
    return parse_results(*_read(path))


def read_anything(path: Path) -> Results | Comparison:
    """Results as `read_results` has them, or the comparison that the file holds."""
    document, where = _read(path)
    if isinstance(document, dict) and {"pairs", "policies"} <= set(document):
        return from_json(Comparison, document, where=where)
    return parse_results(document, where)


def _read(path: Path) -> tuple[object, str]:
    """The document, and what to call it in a refusal."""
    file = path / "results.json" if path.is_dir() else path
    if not file.is_file():
        fix = "Run etips evaluate first." if path.is_dir() else ""
        raise FileError(str(file), "is missing", fix=fix)
    if file.stat().st_size > _LIMIT:
        raise FileError(str(file), "is too large for results.json")

    def refuse_constant(text: str) -> float:
        raise ValueError(text)

    try:
        return json.loads(file.read_bytes(), parse_constant=refuse_constant), str(file)
    except (OSError, ValueError, RecursionError) as error:
        raise FileError(str(file), "is not valid JSON") from error


def read_choice(path: Path) -> ChoiceRecord | None:
    """What a super learner tried and kept, from the file of its run; None if there is none."""
    document = read_document(path)
    return None if document is None else from_json(ChoiceRecord, document, where=str(path))


def parse_results(document: object, where: str = "results") -> Results:
    """The results that a document holds; else a refusal that names the first field at fault."""
    of_a_study = isinstance(document, dict) and _OF_A_STUDY & set(document)
    return from_json(StudyResult if of_a_study else Results, document, where=where)


def from_json(kind: type[T], document: object, *, where: str = "results") -> T:
    """A dataclass of the results from what `to_json` made of it; `where` is its name."""
    try:
        _require_small(document, where, ())
        result: T = _adapter(kind).validate_json(json.dumps(document), strict=True)
    except RecursionError:
        raise FileError(where, "is nested too deeply for a results document of etips") from None
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        words = first["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
        location = first["loc"]
        if first["type"] == "missing":
            location, words = location[:-1], f"lacks {location[-1]}"
        if first["type"] == "unexpected_keyword_argument":
            words = "has a field that is not known"
        raise _refusal(where, location, words) from None
    return result


def json_schema(kind: type = StudyResult) -> dict[str, object]:
    """The JSON Schema of a dataclass of the results."""
    return _adapter(kind).json_schema()


def _refusal(where: str, location: tuple[int | str, ...], words: str) -> FileError:
    known = (part for part in location if isinstance(part, int) or part in _FIELDS)
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in known)
    rule = f"{place.lstrip('.') or 'the whole'} {words}"
    return FileError(where, f"is not a results document of etips: {rule}")


def _require_small(value: object, where: str, location: tuple[int | str, ...]) -> None:
    """Refuse numbers that nothing could be printed of."""
    if isinstance(value, dict | list):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        for name, inner in pairs:
            _require_small(inner, where, (*location, name))
    elif isinstance(value, int | float) and not abs(value) < LARGEST:
        raise _refusal(where, location, "is too large")
