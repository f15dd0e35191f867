"""What the tests of run folders share."""

import pytest

from etips.models.bundle import Bundle
from etips.models.encoders.gru import GRU
from etips.models.network import Network


@pytest.fixture
def start():
    """The networks that a stage starts from."""
    return Bundle.start(Network(GRU(2), n_features=2, n_static=0, n_outputs=2), [0])


@pytest.fixture
def folder(tmp_path):
    """A run folder that is still to be made."""
    return tmp_path / "run"
