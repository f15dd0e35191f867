"""What the tests of learning share: a watch on training."""

import pytest

from etips.learn.fitting import driver


@pytest.fixture
def trained(monkeypatch):
    """How many networks every training has, one after the other."""
    sizes, train = [], driver.train

    def noted(bundle, *rest, **more):
        sizes.append(bundle.n_members)
        return train(bundle, *rest, **more)

    monkeypatch.setattr(driver, "train", noted)
    return sizes
