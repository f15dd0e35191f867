"""Findings of a study that nobody ran: policies made by hand, no network trained."""

import numpy as np
from small_studies import clinic_document, small_experiment, zeros_document
from small_worlds import CLINIC

from etips.evaluation.log import Log
from etips.results.evaluate import assess_policies
from etips.studies.findings import Findings
from etips.studies.measures import measure_policy
from etips.studies.plan import task_name

PATH = [
    {"translation": 0.3, "action": None, "risk": 0.5, "matching_factor": 1.0, "chosen": False},
    {"translation": 0.7, "action": None, "risk": 0.4, "matching_factor": 0.9, "chosen": True},
    {"translation": None, "action": 2, "risk": 0.6, "matching_factor": 1.1, "chosen": False},
]
QUALITY = {"log_loss": 0.75, "accuracy": 0.6, "calibration_error": 0.1}


def findings(table="table2", *, data=None, methods=("etips", "random"), path=PATH):
    """Two methods, two folds, both judged on the same stays."""
    document = clinic_document() if table == "table2" else zeros_document()
    experiment = small_experiment({**document, "methods": list(methods)})
    stays = CLINIC.log(60, seed=0) if data is None else data
    sharp = CLINIC.log(60, seed=0).true_logging() ** 2
    policies = [sharp / sharp.sum(axis=1, keepdims=True), np.full_like(sharp, 1 / 3)]
    pooled = dict(zip(methods, policies, strict=True))
    log = Log.of(stays, predicted=np.full_like(sharp, 0.5))
    told = {"n_learnt_from": 30, "n_held_out": 30, "quality": QUALITY}
    return Findings(
        experiment=experiment,
        data=stays,
        log=log,
        policies={name: [own, own] for name, own in pooled.items()},
        pooled=pooled,
        measures={name: [measure_policy(log, stays, own)] * 2 for name, own in pooled.items()},
        assessed=assess_policies(pooled, log, stays),
        told={
            task_name(name, fold): {**told, "path": path if name == "etips" else []}
            for name in methods
            for fold in range(2)
        },
        notes={"propensities": "known", "clip": "0"},
    )
