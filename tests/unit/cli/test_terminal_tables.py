"""Tables on a terminal: whole, whatever its width."""

import io
import re

import pytest
from rich.console import Console

from etips.cli.terminal_tables import print_table

WIDE = ["policy", "ATENP", "IPS", "SNIPS", "DR", "matching factor", "matched / others", "verdict"]
WIDE += ["change over a whole stay", "true risk", "true risk, drawn"]
ROW = [*("-0.044 ± 0.005", "0.494 ± 0.003", "0.500 ± 0.003", "0.500 ± 0.002", "0.988 ± 0.001")]
ROW += ["7,577 / 8,199", "reliable", "-0.852 [-1.299, -0.405], doubtful", "0.4984 ± 0.0015", "-"]
ROWS = [["etips", *ROW], ["most-frequent", *ROW]]


def printed(columns, rows, width, look="lines"):
    file = io.StringIO()
    print_table(columns, rows, look=look, console=Console(file=file, width=width))
    return file.getvalue()


@pytest.mark.parametrize("look", ["lines", "plain"])
@pytest.mark.parametrize("width", [60, 80, 100, 132])
def test_a_table_too_wide_is_printed_in_parts_and_nothing_is_cut(width, look):
    text = printed(WIDE, ROWS, width, look)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    for cell in ROW:
        for part in re.split(" ± | (?=\\[)|, (?=d)", cell):
            assert text.count(part) >= 2, cell
    assert text.count("etips") == text.count("most-frequent")  # each part names its rows
    assert text.count("etips") >= (2 if width <= 100 else 1)


def test_a_table_that_fits_is_one_and_its_spreads_stay_beside_their_figures():
    text = printed(WIDE, ROWS, 250)
    assert text.count("etips") == 1
    assert "-0.044 ± 0.005" in text


def test_a_long_name_takes_several_lines_and_markup_is_text():
    name = "[red]" + "x" * 70
    text = printed(["policy", "risk"], [[name, "0.5"]], 80)
    assert max(map(len, text.splitlines())) <= 80
    letters = re.sub(r"[^x\[\]red]", "", text.split("┡")[1])
    assert letters.count("x") == 70
    assert "[red]" in text


def test_a_title_wider_than_its_column_takes_several_lines():
    text = printed(["policy", "matching factor there"], [["p", "0.99"]], 80)
    assert "matching factor" not in text
    assert "matching" in text


def test_no_rows_are_a_head():
    assert "policy" in printed(["policy", "risk"], [], 80)


def test_a_name_takes_several_lines_before_a_table_is_parted():
    columns = ["quantity", "target", "accepted", "found", "outcome"]
    row = ["mean of ln(0.1 + output_4hourly)", "278568", "277500 to 279700", "not shown"]
    text = printed(columns, [[*row, "too small to judge"]], 80)
    assert text.count("quantity") == 1
    assert "too small" in text
    assert max(map(len, text.splitlines())) <= 80
