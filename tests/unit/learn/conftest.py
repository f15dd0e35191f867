"""What the tests of learning share: a watch on training."""

import pytest

from etips.learn.fitting import trainer


@pytest.fixture
def trained(monkeypatch):
    """How many networks every training has, one after the other."""
    sizes, train = [], trainer.train

    def noted(bundle, *rest, **more):
        sizes.append(bundle.n_members)
        return train(bundle, *rest, **more)

    monkeypatch.setattr(trainer, "train", noted)
    return sizes
