"""Settings written as TOML read back as they were."""

import math
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etips.errors import SettingError
from etips.files.toml import parse_toml
from etips.files.toml_writer import format_toml

texts = st.text(st.characters(exclude_categories=["Cs"]))
plain = st.one_of(
    st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), texts
)
tables = st.recursive(
    st.dictionaries(texts, plain | st.lists(plain), max_size=4),
    lambda inner: st.dictionaries(texts, inner | plain, max_size=4),
    max_leaves=6,
)


@given(tables)
def test_what_is_written_reads_back(document):
    assert tomllib.loads(format_toml(document)) == document


def test_nan_reads_back_as_nan():
    assert math.isnan(parse_toml(format_toml({"support": math.nan}))["support"])


def test_tables_come_after_what_is_plain():
    text = format_toml({"data": {"lag": 1}, "method": "etips"})
    assert text == 'method = "etips"\n\n[data]\nlag = 1\n'


def test_what_toml_has_no_word_for_is_refused():
    for odd in (None, [1, None], {"deeper"}):
        with pytest.raises(SettingError, match=r"^hidden: must be a number"):
            format_toml({"settings": {"hidden": odd}})
