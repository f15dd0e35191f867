"""Results read back from JSON: typed, checked, refused in one line that never shows a value.

The only module of the results that needs pydantic, which also writes the JSON Schema.
"""

import json
from collections.abc import Callable, Iterator
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
_OF_A_STUDY = {field.name for field in fields(StudyResult)} - {f.name for f in fields(Results)}

T = TypeVar("T")
_adapter: Callable[[type], TypeAdapter[Any]] = cache(TypeAdapter)  # slow to make


def read_results(path: Path) -> Results:
    """A results document from a file; a `StudyResult` where a study wrote it.

    Args:
        path: A `results.json`, or a folder that holds one.
    """
    return parse_results(_read(path), where=str(_file(path)))


def read_anything(path: Path) -> Results | Comparison:
    """Results as `read_results` has them, or the comparison that the file holds."""
    document, where = _read(path), str(_file(path))
    if isinstance(document, dict) and {"pairs", "policies"} <= set(document):
        return from_json(Comparison, document, where=where)
    return parse_results(document, where=where)


def _file(path: Path) -> Path:
    return path / "results.json" if path.is_dir() else path


def _read(path: Path) -> object:
    file = _file(path)
    if not file.is_file():
        fix = "Run etips evaluate first." if path.is_dir() else ""
        raise FileError(str(file), "is missing", fix=fix)
    if file.stat().st_size > _LIMIT:
        raise FileError(str(file), "is too large for results.json")
    try:
        document: object = json.loads(file.read_bytes(), parse_constant=_refuse_constant)
    except (OSError, ValueError, RecursionError) as error:
        raise FileError(str(file), "is not valid JSON") from error
    return document


def read_choice(path: Path) -> ChoiceRecord | None:
    """What a super learner tried and kept, from the file of its run; None if there is none."""
    document = read_document(path)
    return None if document is None else from_json(ChoiceRecord, document, where=str(path))


def parse_results(document: object, *, where: str = "results") -> Results:
    """The results that a document holds; else a refusal that names the first field at fault."""
    of_a_study = isinstance(document, dict) and _OF_A_STUDY & set(document)
    return from_json(StudyResult if of_a_study else Results, document, where=where)


def from_json(kind: type[T], document: object, *, where: str = "results") -> T:
    """A dataclass of the results from what `to_json` made of it.

    Args:
        where: What to call it in a refusal.
    """
    try:
        huge = next(_huge_numbers(document, ""), None)
        if huge is not None:
            raise FileError(where, f"is not a results document of etips: {huge} is too large")
        result: T = _adapter(kind).validate_json(json.dumps(document), strict=True)
    except RecursionError:
        raise FileError(where, "is nested too deeply for a results document of etips") from None
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        rule = _rule(first["type"], first["msg"], _place(first["loc"]), first["loc"])
        raise FileError(where, f"is not a results document of etips: {rule}") from None
    return result


def json_schema(kind: type = StudyResult) -> dict[str, object]:
    """The JSON Schema of a dataclass of the results."""
    schema: dict[str, object] = _adapter(kind).json_schema()
    return schema


def _place(location: tuple[int | str, ...]) -> str:
    """Where a fault is, in names of ours only: a key of a mapping may be a person's name."""
    place = ""
    for part in location:
        if isinstance(part, int):
            place += f"[{part}]"
        elif part in _FIELDS:
            place += f".{part}"
    return place.lstrip(".")


def _rule(kind: str, message: str, place: str, location: tuple[int | str, ...]) -> str:
    if kind == "missing":
        name = str(location[-1])
        return f"{place.removesuffix(name).rstrip('.') or 'the whole'} lacks {name}"
    if kind == "unexpected_keyword_argument":
        return f"{place or 'the whole'} has a field that is not known"
    words = message.removeprefix("Value error, ").replace("Input should be", "must be")
    return f"{place or 'the whole'} {words}"


def _huge_numbers(value: object, at: str) -> Iterator[str]:
    """Places of numbers that nothing could be printed of."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _huge_numbers(inner, f"{at}.{name}".lstrip(".") if name in _FIELDS else at)
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _huge_numbers(inner, f"{at}[{number}]")
    elif isinstance(value, int | float) and not abs(value) < LARGEST:
        yield at or "the whole"


def _refuse_constant(text: str) -> float:
    raise ValueError(text)
