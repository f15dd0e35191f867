"""An engine's complaint, which may quote a patient's value, as one line that does not."""

import contextlib
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import duckdb

from etips.errors import DataError, EtipsError, FileError, ResourceError

_FIX: Final = "Check the file, or download it again."


@contextlib.contextmanager
def refusals(where: str) -> Iterator[None]:
    """Turn an engine's complaint, which may quote a patient's value, into a line that does not."""
    try:
        with warnings.catch_warnings():
            # Ibis 12 calls what DuckDB 2 marks as deprecated; nothing a user could act on.
            warnings.simplefilter("ignore", DeprecationWarning)
            yield
    except EtipsError:
        raise
    except (duckdb.InterruptException, RuntimeError) as error:
        if "interrupted" in str(error).lower():  # how DuckDB passes Ctrl-C on
            raise KeyboardInterrupt from None
        raise
    except duckdb.Error as error:
        raise refusal_of(where, str(error)) from None
    except Exception as error:
        if type(error).__module__.split(".")[0] not in ("psycopg", "pyspark", "py4j"):
            raise
        rule = f"the engine refused a query ({type(error).__name__})"
        raise DataError(where, rule, fix="Check the address, the rights and the tables.") from None


_KINDS: Final = {
    "TIMESTAMP": "times as YYYY-MM-DD HH:MM:SS",
    "BIGINT": "whole numbers",
    "DOUBLE": "numbers",
}


def refusal_of(where: str, complaint: str) -> EtipsError:
    """Keep from DuckDB's message only the file, the column, its type and the line."""
    file = re.search(r"([^/\\\s\"']+\.(?:csv\.gz|csv|parquet))", complaint, re.IGNORECASE)
    place = file[1] if file else where
    line = re.search(r"CSV Error on Line: (\d+)", complaint)
    at = f"; fails at line {line[1]}" if line else ""
    column = re.search(r"Column (\w+) is being converted as type (\w+)", complaint)
    if column:
        kind = _KINDS.get(column[2], "text")
        return DataError(place, f"column {column[1]} must hold {kind}{at}", fix=_FIX)
    full = re.search("no space left|file too large|quota exceeded", complaint, re.IGNORECASE)
    if full:
        written = re.search(r"\"(/[^\"]+)\"", complaint)
        disk = (
            f"the disk of {Path(written[1]).parent}" if written else "the disk for temporary files"
        )
        fix = "Free some space, or write to another disk; the source is not at fault."
        return ResourceError(disk, "is full", fix=fix)
    if complaint.startswith("Out of Memory"):
        rule = "needs more memory than there is"
        return ResourceError(where, rule, fix="Give --memory more.")
    if "gzip" in complaint.lower():
        return FileError(place, "must be a whole gzip file", fix=_FIX)
    if line:
        return DataError(place, f"must be a well-formed table{at}", fix=_FIX)
    if complaint.startswith("Conversion Error"):
        return DataError(place, "times and numbers must be written as such", fix=_FIX)
    return FileError(place, "cannot be read", fix=_FIX)
