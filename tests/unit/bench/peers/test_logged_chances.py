"""Propensities for packages that want them."""

from dataclasses import replace

import numpy as np
from test_peer import LOG, shown

from etips.bench.peers.logged_chances import logged_chances
from etips.bench.peers.peer import FLOOR


def test_known_ones_stand_and_others_are_fitted():
    known, _ = shown(LOG)
    assert logged_chances(known) is known.propensity
    fitted = logged_chances(replace(known, propensity=None))
    assert (fitted >= FLOOR).all()
    assert np.corrcoef(fitted, known.propensity)[0, 1] > 0.4
    alone = replace(known, propensity=None, action=np.zeros(300, int))
    assert (logged_chances(alone) == 1).all()
