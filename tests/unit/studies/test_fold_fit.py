"""What a fit on one fold left on record."""

import json
import math

from etips.learn.fitting.candidates import Candidate
from etips.results.study_result import PropensityQuality
from etips.studies.fold_fit import FoldFit

CANDIDATE = Candidate(0.3, None, 0.4, 0.01, 1.0, 90.0, chosen=True)


def test_a_record_survives_json():
    quality = PropensityQuality(log_loss=0.5, accuracy=0.6, calibration_error=None)
    fit = FoldFit(50, 25, quality, 0.1, 0.02, (CANDIDATE,))
    assert FoldFit.from_json(json.loads(json.dumps(fit.to_json()))) == fit
    assert FoldFit.from_json(FoldFit(50, 25).to_json()) == FoldFit(50, 25)


def test_results_show_it_without_nan():
    constant = Candidate(math.nan, 2, 0.4, 0.01, 1.0, 90.0)
    shown = FoldFit(50, 25, path=(CANDIDATE, constant)).summarize()
    assert (shown.n_learnt_from, shown.n_held_out, shown.quality) == (50, 25, None)
    assert [c.translation for c in shown.path] == [0.3, None]
    assert [c.chosen for c in shown.path] == [True, False]
