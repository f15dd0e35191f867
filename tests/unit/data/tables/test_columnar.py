"""Parquet and Arrow files in parts, and refused when damaged."""

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from etips.data.tables.sources import open_source, whole_column
from etips.errors import FileError

TABLE = pa.table({"a": [1, 2, 3], "b": ["x", "y", None]})


@pytest.mark.parametrize("name", ["t.parquet", "t.feather", "t.arrow"])
def test_a_file_of_columns_is_read(tmp_path, name):
    path = tmp_path / name
    write = pq.write_table if name.endswith("parquet") else pyarrow.feather.write_feather
    write(TABLE, path)
    source = open_source(path)
    assert source.n_rows == 3
    assert {
        name: whole_column(source, name).to_pylist() for name in source.columns
    } == TABLE.to_pydict()


@pytest.mark.parametrize("name", ["t.parquet", "t.feather"])
@pytest.mark.parametrize("keep", [0.3, 0.8])
def test_a_file_that_is_cut_is_refused(tmp_path, name, keep):
    path = tmp_path / name
    write = pq.write_table if name.endswith("parquet") else pyarrow.feather.write_feather
    write(TABLE, path)
    content = path.read_bytes()
    path.write_bytes(content[: int(keep * len(content))])
    with pytest.raises(FileError, match=r"cannot be read as (Parquet|Arrow)\. Is it whole\?"):
        open_source(path)
