"""pyarrow does not import pandas by itself, and works with it all the same."""

import subprocess
import sys

from etips.cli.arrow_start import start_arrow

SCRIPT = """
import sys
import numpy as np, pyarrow as pa, pyarrow.compute as pc
from etips.cli.arrow_start import start_arrow
before = list(sys.meta_path)
start_arrow()
assert sys.meta_path == before
pc.fill_null(pa.array([1, None]), pa.scalar(0)).to_numpy(zero_copy_only=False)
pa.array(np.array([1.0, np.nan]), from_pandas=True)
assert "pandas" not in sys.modules
import pandas
assert pa.table(pandas.DataFrame({"a": [1]})).to_pandas()["a"].tolist() == [1]
"""


def test_pandas_is_imported_by_whoever_asks_for_it_alone():
    subprocess.run([sys.executable, "-c", SCRIPT], check=True)


def test_where_it_is_imported_already_nothing_happens():
    before = list(sys.meta_path)
    start_arrow()
    assert sys.meta_path == before
