"""The shipped archives are the ones we looked at, or they are refused."""

import pytest

from etips.errors import FileError
from etips.worlds import shipped


@pytest.mark.parametrize(
    ("name", "array", "shape"),
    [
        ("icu_sepsis.npz", "d_0", (716,)),
        ("icu_sepsis.npz", "state_cluster_centers", (716, 47)),
        ("mnist.npz", "y_train", (60_000,)),
        ("mnist.npz", "x_test", (10_000, 28, 28)),
    ],
)
def test_a_shipped_array_is_read_after_its_archive_was_checked(name, array, shape):
    (found,) = shipped.read_shipped(name, array)
    assert found.shape == shape


def test_an_archive_that_changed_is_refused(monkeypatch):
    monkeypatch.setitem(shipped._SHA256, "icu_sepsis.npz", "0" * 64)
    with pytest.raises(FileError, match=r"^icu_sepsis\.npz: is not the file etips ships"):
        shipped.read_shipped("icu_sepsis.npz", "d_0")
