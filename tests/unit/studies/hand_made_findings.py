"""Findings of a study that nobody ran: policies made by hand, no network trained."""

import math
from dataclasses import replace

import numpy as np
from small_studies import clinic_document, small_experiment, zeros_document
from small_worlds import CLINIC

from etips.evaluation.log import Log
from etips.learn.fitting.candidates import Candidate
from etips.results.evaluate import assess_policies
from etips.results.followed_policies import as_followed
from etips.results.study_result import FitRecord, PropensityQuality
from etips.results.summaries import summarize_path
from etips.studies.findings import Findings, measure_policy

NONE = math.nan
PATH = (
    Candidate(0.3, 0.5, NONE, 1.0, NONE),
    Candidate(0.7, 0.4, NONE, 0.9, NONE, chosen=True),
    Candidate(NONE, 0.6, NONE, 1.1, NONE, form="beta-IPS"),
)
QUALITY = PropensityQuality(log_loss=0.75, accuracy=0.6, calibration_error=0.1)


def findings(table="table2", *, data=None, methods=("etips", "random"), path=PATH):
    """Two methods, two folds, both judged on the same stays."""
    document = clinic_document() if table == "table2" else zeros_document()
    experiment = small_experiment({**document, "methods": list(methods)})
    stays = CLINIC.log(60, seed=0) if data is None else data
    sharp = CLINIC.log(60, seed=0).true_logging() ** 2
    policies = [sharp / sharp.sum(axis=1, keepdims=True), np.full_like(sharp, 1 / 3)]
    pooled = dict(zip(methods, map(as_followed, policies), strict=True))
    log = Log.of(stays, predicted=np.full_like(sharp, 0.5))
    fit = FitRecord(n_learned_from=30, n_held_out=30, quality=QUALITY)
    return Findings(
        experiment=experiment,
        data=stays,
        log=log,
        pooled=pooled,
        measures={name: [measure_policy(log, stays, own)] * 2 for name, own in pooled.items()},
        assessed=assess_policies(pooled, log, stays),
        fits={
            name: [replace(fit, path=summarize_path(path) if name == "etips" else ())] * 2
            for name in methods
        },
        notes={"propensities": "known", "clip": "0"},
    )
