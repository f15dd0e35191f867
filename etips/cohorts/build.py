"""The pipeline, top to bottom: raw tables to the final table, its actions and its funnel."""

from dataclasses import replace
from typing import Final

import numpy as np
import polars as pl

from etips.cohorts.dataset.dose_actions import (
    N_ACTIONS,
    DoseClasses,
    action_of,
    add_samples,
    classify,
    training_stays,
)
from etips.cohorts.dataset.funnel import (
    Funnel,
    Stage,
    count_gaps,
    missing_shares,
    require_stays,
)
from etips.cohorts.dataset.sepsis_cohort import Cohort
from etips.cohorts.mimic.extraction import Extraction
from etips.cohorts.sepsis3 import infection
from etips.cohorts.sepsis3.grid import Bools
from etips.cohorts.sepsis3.impute import impute
from etips.cohorts.sepsis3.rows import rows_of_both_windows
from etips.cohorts.sepsis3.rules import Rules
from etips.cohorts.sepsis3.scores import SOFA_PARTS, add_ratios, add_scores, exclude, tidy
from etips.cohorts.sepsis3.variables import (
    FINAL_CHARTED,
    LABS,
    PASS_1_COLUMNS,
    PASS_2_COLUMNS,
    TABLE_COLUMNS,
    VITALS,
    step_names,
)
from etips.progress import Progress, no_progress

_DECISION_COLUMNS: Final = (
    "icustayid", "bloc", "fluid_class", "vaso_class", "action", "loss", "rows_before",
    "SOFA_next_bloc", "SOFA_next_row", "loss_next_row", "sample_A", "sample_B", "sample_C",
    "training",
)  # fmt: skip


def build_cohort(extraction: Extraction, *, progress: Progress = no_progress) -> Cohort:
    """Build the Sepsis-3 cohort from a database opened under a profile, as by `databases.extract`.

    Its source is not closed. `progress` is given what is being done and the share that is done.
    """
    rules = extraction.rules
    extraction.begin()
    progress("reading the tables", 0.0)
    people, onsets, stages = find_candidates(extraction)
    pass_1, read_pass_2 = rows_of_both_windows(
        extraction.events,
        people,
        rules,
        extraction.kept,
        progress=lambda what, share: progress(what, 0.3 + share / 3),
    )
    progress("imputing pass 1", 0.65)
    _stage(stages, "with data in the pass 1 window", pass_1)
    extraction.require_rows("charted", "laboratory", "urine")
    training = training_stays(people, rules)
    left = complete(tidy(pass_1), rules, training=training, second_pass=False)
    left = _exclude(left, rules, stages)
    kept = left.group_by("icustayid").agg(
        pl.col("mortality_90d").first(),
        max_sofa=pl.col("SOFA").max(),
        max_sirs=pl.col("SIRS").max(),
    )
    kept = kept.join(people.select("onset", icustayid="stay"), on="icustayid").sort("icustayid")
    del left  # the memory is needed
    pass_2 = read_pass_2().filter(pl.col("icustayid").is_in(kept["icustayid"].implode()))
    pass_2 = tidy(pass_2).with_columns(pl.col("input_total", "input_4hourly").clip(lower_bound=0))
    _stage(stages, "with data in the pass 2 window", pass_2)
    progress("imputing pass 2", 0.8)
    scored = complete(pass_2, rules, training=training, second_pass=True)
    if rules.recheck_in_pass_2:
        again = replace(rules, no_scattered_deletion=True)  # a slip of pass 1 only
        scored = _exclude(scored, again, stages, ", pass 2")
    rows, fluid, vasopressor = _decisions(scored, training, rules)
    return Cohort(
        table=scored.select(TABLE_COLUMNS).rename(step_names(rules.step_hours)),
        decisions=rows.select(_DECISION_COLUMNS),
        onsets=onsets.rename({"stay": extraction.stay_column}),
        sofa_parts=scored.select("bloc", "icustayid", *SOFA_PARTS, sofa="SOFA"),
        fluid=fluid,
        vasopressor=vasopressor,
        funnel=_funnel(rows, extraction, tuple(stages), missing_shares(pass_2, FINAL_CHARTED)),
        units=extraction.audit(),
        unread=extraction.unread(),
        before_imputation=(pass_1.select(PASS_1_COLUMNS), pass_2.select(PASS_2_COLUMNS)),
        kept=kept,
        patients=people.select("stay", "patient"),
        label=extraction.label,
        profile=extraction.profile,
        settings={"database": extraction.name, **extraction.settings},
    )


def find_candidates(
    extraction: Extraction,
) -> tuple[pl.DataFrame, pl.DataFrame, list[Stage]]:
    """Adults with a suspected infection, all onsets, and the funnel so far.

    Also has the rows of every adult stay with an antibiotic kept.
    """
    rules = extraction.rules
    people = infection.demographics(extraction.stays(), rules)
    known = pl.col("stay").is_in(people["stay"].implode())
    given = infection.attach_antibiotics(extraction.antibiotics(), people, rules).filter(known)
    samples = infection.attach_samples(extraction.samples(), people, rules)
    treated = given["stay"].drop_nulls().unique()
    adults = people.filter(pl.col("age") > infection.ADULT_DAYS)
    extraction.keep(adults.filter(pl.col("stay").is_in(treated.implode()))["stay"].to_list())
    samples = pl.concat([samples, extraction.cultures().filter(known)])
    own = extraction.own_definition()
    onsets = own.onsets if own else infection.find_onsets(given, samples, rules)
    chosen = adults.join(onsets, on="stay").sort("stay")
    sampled = samples["stay"].unique()
    stages = [
        Stage("ICU stays", people.height),
        Stage("adult", adults.height),
        Stage("with an antibiotic (any age)", treated.len()),
        Stage("with a sample (any age)", sampled.len()),
        Stage("with both (any age)", treated.filter(treated.is_in(sampled.implode())).len()),
        Stage("with an onset (any age)", onsets.height),
        Stage("adult with an onset", chosen.height),
    ]
    if own:
        chosen = chosen.filter(pl.col("stay").is_in(sorted(own.septic)))
        stages.append(Stage("adult with Sepsis-3 as defined", chosen.height))
    for n in range(1, len(stages) + 1):
        require_stays(stages[:n])
    extraction.require_rows("samples")
    return chosen, onsets, stages


def complete(
    rows: pl.DataFrame, rules: Rules, *, training: frozenset[int], second_pass: bool
) -> pl.DataFrame:
    """Impute, then derive ratios and scores (sections 13 and 14)."""
    charted = FINAL_CHARTED if second_pass else VITALS + LABS
    reference = _rows_of(rows, training) if rules.fit_on_training_only else None
    rows = impute(rows, charted, rules, donors=reference, drop_sparse=not second_pass)
    return add_scores(add_ratios(rows, capped=second_pass, reference=reference), rules)


def _decisions(
    scored: pl.DataFrame, training: frozenset[int], rules: Rules
) -> tuple[pl.DataFrame, DoseClasses, DoseClasses]:
    """Rows with their actions, losses and samples, and the classes of both doses."""
    in_training = _rows_of(scored, training)
    fit = in_training if rules.fit_on_training_only else None
    fluid_class, fluid = classify(scored["input_4hourly"].to_numpy(), training=fit)
    vaso_class, vasopressor = classify(scored["max_dose_vaso"].to_numpy(), training=fit)
    rows = add_samples(scored).with_columns(
        fluid_class=pl.Series(fluid_class),
        vaso_class=pl.Series(vaso_class),
        action=pl.Series(action_of(fluid_class, vaso_class)),
        loss=pl.col("loss_next_bloc"),
        training=pl.Series(in_training),
    )
    return rows, fluid, vasopressor


def _funnel(
    rows: pl.DataFrame,
    extraction: Extraction,
    stages: tuple[Stage, ...],
    missing_share: dict[str, float],
) -> Funnel:
    samples = rows.filter("sample_A")
    lengths, some = samples["rows_before"].to_numpy(), samples.height > 0
    n_gaps, n_first = count_gaps(rows)
    return Funnel(
        profile=extraction.profile,
        antibiotic_order=extraction.rules.antibiotic_order.value,
        stages=stages,
        n_rows=rows.height,
        n_single_row_stays=rows.filter(pl.len().over("icustayid") == 1).height,
        n_gaps=n_gaps,
        n_gaps_after_first_row=n_first,
        n_samples={name: int(rows[f"sample_{name}"].sum()) for name in "ABC"},
        history=(
            (int(lengths.min()), float(lengths.mean()), int(lengths.max())) if some else (0, 0.0, 0)
        ),
        mean_loss=float(samples["loss"].to_numpy().mean()) if some else float("nan"),
        action_counts=tuple(np.bincount(rows["action"].to_numpy(), minlength=N_ACTIONS).tolist()),
        missing_share=missing_share,
    )


def _stage(stages: list[Stage], name: str, rows: pl.DataFrame) -> None:
    stages.append(Stage(name, rows["icustayid"].n_unique()))
    require_stays(stages)


def _exclude(
    rows: pl.DataFrame, rules: Rules, stages: list[Stage], which: str = ""
) -> pl.DataFrame:
    """Rows that are left, and a stage for what each rule dropped."""
    left, dropped = exclude(rows, rules)
    for name, n in dropped.items():
        before = stages[-1].n_stays or 0
        stages.append(Stage(f"after exclusion: {name}{which}", before - n))
        require_stays(stages)
    return left


def _rows_of(rows: pl.DataFrame, stays: frozenset[int]) -> Bools:
    chosen: Bools = rows["icustayid"].is_in(sorted(stays)).to_numpy()
    return chosen
