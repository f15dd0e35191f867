"""What `etips.data` needs to be imported, and what it offers."""

import subprocess
import sys

import pytest

import etips.data


def test_every_name_it_offers_is_there():
    for name in etips.data.__all__:
        assert getattr(etips.data, name) is not None


def test_a_name_it_does_not_offer_is_an_attribute_error():
    with pytest.raises(AttributeError, match=r"module 'etips\.data' has no attribute 'nonsense'"):
        _ = etips.data.nonsense


def test_it_can_be_imported_where_pyarrow_is_not_installed():
    """Learning needs NumPy and torch only; pyarrow is asked for by the first file."""
    script = """
import sys
sys.modules["pyarrow"] = None
from etips.data import Trajectories, Scaler, split, from_arrays
from_arrays([[1.0]], [0], [1.0])
try:
    from etips.data import read_table
except ImportError:
    print("only files need it")
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "only files need it"
