"""What describes an encoder in a file."""

import pytest

from etips.errors import SettingError
from etips.models.encoders.encoder import read_sizes


def test_the_sizes_of_a_document_are_read():
    assert read_sizes({"name": "x", "hidden": 3, "embed": 0}, ("hidden", "embed")) == {
        "hidden": 3,
        "embed": 0,
    }


@pytest.mark.parametrize(
    "document",
    [
        {"name": "x"},
        {"hidden": 3},
        {"name": "x", "hidden": 3, "more": 1},
        {"name": "x", "hidden": 3.0},
        {"name": "x", "hidden": True},
        {"name": "x", "hidden": "3"},
        {"name": "x", "hidden": None},
    ],
)
def test_what_is_missing_too_much_or_no_whole_number_is_refused(document):
    with pytest.raises(SettingError):
        read_sizes(document, ("hidden",))
