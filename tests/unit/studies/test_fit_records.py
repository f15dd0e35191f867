"""How a method was fitted to one fold, on record."""

import json
import math

from etips.learn.fitting.candidates import Candidate
from etips.results.study_result import FitRecord, PropensityQuality
from etips.results.translation_path import summarize_path
from etips.studies.fit_records import fit_from_json, fit_to_json

PATH = (
    Candidate(0.3, None, 0.4, 0.01, 1.0, 90.0, chosen=True),
    Candidate(math.nan, 2, math.inf, math.inf, 0.0, 0.0),
)


def test_a_record_survives_json():
    quality = PropensityQuality(log_loss=0.5, accuracy=0.6, calibration_error=None)
    full = FitRecord(
        n_learned_from=50,
        n_held_out=25,
        quality=quality,
        support=0.1,
        clipped_share=0.02,
        path=summarize_path(PATH),
    )
    for record in (full, FitRecord(n_learned_from=50, n_held_out=25)):
        text = json.dumps(fit_to_json(record), allow_nan=False)
        assert fit_from_json(json.loads(text)) == record
