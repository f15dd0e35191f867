"""Settings in TOML."""

import subprocess
import sys
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etips.errors import FileError, SettingError
from etips.files.toml import format_toml, parse_toml, read_toml


def test_a_document_is_read_from_text_and_from_a_file(tmp_path):
    text = 'method = "etips"\n[data]\nlag = 1\n'
    assert parse_toml(text) == {"method": "etips", "data": {"lag": 1}}
    (tmp_path / "x.toml").write_text(text)
    assert read_toml(tmp_path / "x.toml") == parse_toml(text)
    with pytest.raises(SettingError, match=r"^TOML: is not valid at line 1, column 5\.$"):
        parse_toml("a = kanarienvogel")


def test_reading_needs_no_package():
    """A study is described in TOML, and must run without `tomli_w`."""
    code = "import sys; sys.modules['tomli_w'] = None; import etips.files.toml, etips.studies.study"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"method = etips", r"TOML is not valid at line 1, column 10"),
        (b"a = 1\na = 2", "TOML is not valid"),
        (b"a = [", "TOML is not valid"),
        (b"a = " + b"[" * 5000, "TOML is not valid"),
        (b"\xff\xfe", "must be text in UTF-8"),
        (b"#" * (2**20 + 1), "is too large"),
    ],
)
def test_a_file_that_is_no_toml_is_refused_by_name_and_without_its_content(
    content, words, tmp_path
):
    path = tmp_path / "config.toml"
    path.write_bytes(content)
    with pytest.raises(FileError, match=words) as refusal:
        read_toml(path)
    assert str(refusal.value).startswith(str(path))
    assert "\n" not in str(refusal.value)
    assert "etips\n" not in str(refusal.value)


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


def test_tables_come_after_what_is_plain():
    text = format_toml({"data": {"lag": 1}, "method": "etips"})
    assert text == 'method = "etips"\n\n[data]\nlag = 1\n'


def test_what_toml_has_no_word_for_is_refused():
    for odd in (None, [1, None], {"deeper"}):
        with pytest.raises(SettingError, match=r"^hidden: must be a number"):
            format_toml({"settings": {"hidden": odd}})
