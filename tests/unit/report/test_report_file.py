"""Results as a file, by its ending."""

import pytest
from report_documents import document

from etips.errors import FileError
from etips.report.report_file import require_ending, write_report
from etips.results.parsing import parse_results


def test_the_ending_says_page_or_table(tmp_path):
    results = parse_results(document(60))
    assert write_report(results, tmp_path / "a.html").read_text().startswith("<!doctype")
    assert write_report(results, tmp_path / "a.csv").read_text().startswith("policy,")


def test_any_other_ending_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(FileError, match=r"must end in \.html or \.csv"):
        require_ending(tmp_path / "a.txt")
    assert list(tmp_path.iterdir()) == []
