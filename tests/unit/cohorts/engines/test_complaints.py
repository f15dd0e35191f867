"""What an engine complains about, as one line without a value."""

import duckdb
import pytest

from etips.cohorts.engines.complaints import refusal_of, refusals
from etips.errors import DataError, FileError, ResourceError


def test_an_interrupt_that_an_engine_passes_on_is_one():
    """DuckDB turns Ctrl-C during a query into an error of its own."""
    with pytest.raises(KeyboardInterrupt), refusals("here"):
        raise RuntimeError("Query interrupted")
    with pytest.raises(RuntimeError, match="else"), refusals("here"):
        raise RuntimeError("something else")


@pytest.mark.parametrize(
    ("complaint", "kind", "text"),
    [
        ("Out of Memory Error: failed S3CRET", ResourceError, "here: needs more memory"),
        (
            "IO Error: No space left on device S3CRET",
            ResourceError,
            "the disk for temporary files: is",
        ),
        (
            'IO Error: Could not write file "/scratch/work/a.tmp": No space left on device S3CRET',
            ResourceError,
            "the disk of /scratch/work: is full. Free some space",
        ),
        ("Conversion Error: S3CRET", DataError, "here: times and numbers must be written as such"),
        ("/a/b/X.csv.gz: gzip stream is broken", FileError, "X.csv.gz: must be a whole gzip file"),
        ("CSV Error on Line: 7 S3CRET", DataError, "here: must be a well-formed table; fails at"),
        (
            "CSV Error on Line: 7 Column c is being converted as type BIGINT from S3CRET",
            DataError,
            "here: column c must hold whole numbers; fails at line 7",
        ),
        ("something else S3CRET", FileError, "here: cannot be read"),
    ],
)
def test_a_complaint_becomes_place_and_rule_without_the_value(complaint, kind, text):
    refusal = refusal_of("here", complaint)
    assert isinstance(refusal, kind)
    assert str(refusal).startswith(text)
    assert "S3CRET" not in str(refusal)


def test_an_error_of_the_engine_is_refused_and_a_bug_is_not():
    with pytest.raises(FileError, match=r"^here: cannot be read"), refusals("here"):
        raise duckdb.Error("S3CRET")
    with pytest.raises(ZeroDivisionError), refusals("here"):
        _ = 1 / 0
