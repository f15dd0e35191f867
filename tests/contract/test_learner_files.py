"""F6: a saved policy of any learner answers as before, or is refused."""

import numpy as np
import pytest
from fitted_learners import (
    arrays,
    every_learner,
    fitted,
    log,
)
from small_worlds import LEARNERS

import etips
from etips.errors import FileError
from etips.policies.policy import FittedPolicy


@every_learner
def test_a_saved_policy_answers_as_before(name, tmp_path):
    learner = fitted(name)
    learner.save(tmp_path / "policy")
    loaded = etips.load(tmp_path / "policy")
    assert isinstance(loaded, FittedPolicy)
    assert loaded.predict_proba(log()).tobytes() == learner.predict_proba(log()).tobytes()
    assert (loaded.abstains(log()) == learner.abstains(log())).all()
    with pytest.raises(FileError, match="exists already"):
        learner.save(tmp_path / "policy")
    learner.save(tmp_path / "policy", overwrite=True)


@every_learner
def test_a_saved_policy_takes_arrays_as_the_learner_does(name, tmp_path):
    features, action, loss = arrays()
    learner = LEARNERS[name]().fit(features, action, loss, propensity=np.full(60, 1 / 3))
    learner.save(tmp_path / "policy")
    loaded = etips.load(tmp_path / "policy")
    assert loaded.predict_proba(features).tobytes() == learner.predict_proba(features).tobytes()
    assert (loaded.predict(features) == learner.predict(features)).all()
    assert (loaded.abstains(features) == learner.abstains(features)).all()
    both = np.stack([features, features + 1], axis=1)
    found = loaded.predict(both, lengths=np.ones(60, int))
    assert (found == learner.predict(features)).all()


@every_learner
def test_f6_a_changed_byte_of_a_saved_policy_is_refused_by_file(name, tmp_path):
    """F6: one flip in the middle and one at the end of every file."""
    folder = tmp_path / "policy"
    fitted(name).save(folder)
    for path in sorted(folder.iterdir()):
        whole = path.read_bytes()
        for place in (len(whole) // 2, len(whole) - 2):
            path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
            with pytest.raises(FileError, match=path.name):
                etips.load(folder)
        path.write_bytes(whole)
    etips.load(folder)
