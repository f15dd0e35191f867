"""The wards of the coverage record: finite tables, so that thousands of worlds can be asked.

`benchmarks.coverage` puts these sections below its own. Each world has tables of its own, so no
figure hangs on one lucky ward.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np

from benchmarks.ward import N_ACTIONS, N_CONTEXTS, Ward
from etips.evaluation import (
    DEFAULT,
    Logit,
    Percentile,
    Studentised,
    Wald,
    bound_risk,
    diagnose,
    difference,
    dr,
    ips,
    judge,
    logged_risk,
    snips,
    view,
)

FIRST_WORLD = 10_000  # the thresholds of the verdict were chosen on worlds 0 to 299
RISKS = (0.05, 0.5, 0.95)
INTERVALS = {
    "default": DEFAULT,
    "logit": Logit(),
    "Wald": Wald(),
    "studentised": Studentised(replicates=500),
    "percentile": Percentile(replicates=500),
}
FITTED = tuple(
    ({"risk": risk, "per_stay": per_stay}, n_stays)
    for risk, per_stay, n_stays in product(RISKS, (1, 5), (2000, 5000))
)
GOOD = tuple(
    ({"risk": risk, "per_stay": per_stay}, n_stays)
    for risk, per_stay, n_stays in product(RISKS, (1, 10), (200, 1000))
)
HARD = tuple(
    ({"risk": risk, "per_stay": per_stay, "overlap": overlap, "reluctance": 5.0}, n_stays)
    for overlap, risk, (per_stay, n_stays) in product(
        (0.3, 0.1, 0.03, 0.01, 0.001), RISKS, ((1, 200), (5, 600))
    )
)


@dataclass(frozen=True)
class Tally:
    """What happened over the worlds of one configuration."""

    hits: dict[str, float]  # share of intervals that hold the truth, by interval
    widths: dict[str, float]  # mean width, by interval
    reliable: float  # share of worlds labelled reliable
    covered_reliable: float  # coverage among those; NaN if there are none
    effective_share: float
    max_weight: float


def _seeds(worlds):
    return range(FIRST_WORLD, FIRST_WORLD + worlds)


def tally_snips(settings, n_stays, *, worlds, intervals=None, full=True):
    """Coverage of SNIPS and the verdict, one draw from each of `worlds` wards."""
    intervals = intervals or {"default": DEFAULT}
    hits = {name: [] for name in intervals}
    widths = {name: [] for name in intervals}
    labels, shares, heaviest = [], [], []
    for seed in _seeds(worlds):
        ward = Ward(seed=seed, **settings)
        log, probabilities = ward.log(n_stays, seed=0, full=full)
        policy = view(log, probabilities)
        evidence = snips(log.loss, policy.weight, log.cluster).evidence
        for name, interval in intervals.items():
            low, high = interval(evidence)
            hits[name].append(low <= ward.risk <= high)
            widths[name].append(high - low)
        diagnostics = diagnose(log, policy)
        labels.append(judge(diagnostics).label == "reliable")
        shares.append(diagnostics.effective_share)
        heaviest.append(diagnostics.max_weight)
    reliable, first = np.array(labels), np.array(next(iter(hits.values())))
    return Tally(
        hits={name: float(np.mean(h)) for name, h in hits.items()},
        widths={name: float(np.nanmean(w)) for name, w in widths.items()},
        reliable=float(reliable.mean()),
        covered_reliable=float(first[reliable].mean()) if reliable.any() else float("nan"),
        effective_share=float(np.mean(shares)),
        max_weight=float(np.max(heaviest)),
    )


def crossfit(draw, *, seed, n_folds=5):
    """Propensities and predicted losses of each decision, from tables fitted on other stays.

    The outcome model knows eight bands of contexts only, not all 24: slightly wrong, as models are.
    """
    n = draw.loss.size
    fold = np.random.default_rng([seed, 5]).integers(0, n_folds, draw.stay.max() + 1)[draw.stay]
    propensities, predicted = np.empty((n, N_ACTIONS)), np.empty((n, N_ACTIONS))
    band = draw.context // 3
    for held in range(n_folds):
        fit, use = fold != held, fold == held
        cell = draw.context[fit] * N_ACTIONS + draw.action[fit]
        taken = np.bincount(cell, minlength=N_CONTEXTS * N_ACTIONS).reshape(-1, N_ACTIONS) + 0.5
        propensities[use] = (taken / taken.sum(axis=1, keepdims=True))[draw.context[use]]
        coarse = band[fit] * N_ACTIONS + draw.action[fit]
        size = N_CONTEXTS // 3 * N_ACTIONS
        events = np.bincount(coarse, draw.loss[fit], size) + draw.loss[fit].mean()
        model = (events / (np.bincount(coarse, minlength=size) + 1)).reshape(-1, N_ACTIONS)
        predicted[use] = model[band[use]]
    return propensities, predicted


def estimate_dr(log, probabilities, *, interval=None):
    """The doubly robust estimate of a policy."""
    policy = view(log, probabilities)
    return dr(
        log.loss,
        policy.weight,
        log.cluster,
        predicted=policy.predicted,
        predicted_policy=policy.predicted_policy,
        interval=interval or DEFAULT,
    )


@dataclass(frozen=True)
class Bias:
    """Mean error of an estimator over worlds, its Monte Carlo error, and coverage."""

    bias: float
    noise: float
    coverage: float


def tally_bias(settings, n_stays, *, worlds):
    """Bias of IPS and DR with known propensities, and of DR with both models cross-fitted."""
    errors = {"ips": [], "dr": [], "dr_crossfit": []}
    hits = {name: [] for name in errors}
    for seed in _seeds(worlds):
        ward = Ward(seed=seed, **settings)
        draw = ward.draw(n_stays, seed=0)
        probabilities = ward.policy[draw.context]
        fitted, predicted = crossfit(draw, seed=seed)
        known = draw.log(ward.propensities, predicted=predicted)
        found = {
            "ips": ips(known.loss, view(known, probabilities).weight, known.cluster),
            "dr": estimate_dr(known, probabilities),
            "dr_crossfit": estimate_dr(draw.log(fitted, predicted=predicted), probabilities),
        }
        for name, estimate in found.items():
            errors[name].append(estimate.risk - ward.risk)
            hits[name].append(estimate.low <= ward.risk <= estimate.high)
    return {
        name: Bias(
            float(np.mean(e)),
            float(np.std(e, ddof=1) / np.sqrt(worlds)),
            float(np.mean(hits[name])),
        )
        for name, e in errors.items()
    }


def tally_robust(*, worlds, n_stays=5000, judged=None):
    """Bias of DR, and share not labelled reliable, with either or both models replaced by noise.

    The verdict takes longer than the estimate: it is asked for the first `judged` worlds, or all.
    """
    errors = {"outcome": [], "propensity": [], "both": []}
    wary = {name: [] for name in errors}
    for seed in _seeds(worlds):
        ward = Ward(seed=seed)
        draw = ward.draw(n_stays, seed=0)
        generator = np.random.default_rng([seed, 6])
        score = np.exp(generator.normal(0, 1, (draw.loss.size, N_ACTIONS)))
        noise = score / score.sum(axis=1, keepdims=True)
        model_noise = generator.random((draw.loss.size, N_ACTIONS))
        logs = {
            "outcome": draw.log(ward.propensities, predicted=model_noise),
            "propensity": draw.log(noise, predicted=ward.mean_risks),
            "both": draw.log(noise, predicted=model_noise),
        }
        probabilities = ward.policy[draw.context]
        for name, log in logs.items():
            errors[name].append(estimate_dr(log, probabilities).risk - ward.risk)
            if judged is None or seed < FIRST_WORLD + judged:
                verdict = judge(diagnose(log, view(log, probabilities)))
                wary[name].append(verdict.label != "reliable")
    return {n: (float(np.mean(e)), float(np.mean(wary[n]))) for n, e in errors.items()}


def tally_confounded(*, worlds, gamma=2.0, n_stays=1000):
    """How often the plain interval and the sensitivity bounds hold the truth under confounding."""
    plain, bounded, unshaken = [], [], []
    for seed in _seeds(worlds):
        ward = Ward(seed=seed, gamma=gamma)
        log, probabilities = ward.log(n_stays, seed=0)
        policy = view(log, probabilities)
        estimate = snips(log.loss, policy.weight, log.cluster)
        bound = bound_risk(log, policy, gammas=(gamma,)).bounds[0]
        plain.append(estimate.low <= ward.risk <= estimate.high)
        bounded.append(bound.risk_least.low <= ward.risk <= bound.risk_most.high)
        unshaken.append(bound.risk_least.value <= ward.risk <= bound.risk_most.value)
    return float(np.mean(plain)), float(np.mean(bounded)), float(np.mean(unshaken))


def learn_greedy(draw):
    """A policy learned from one half of a log: in each context the action of least mean loss."""
    cell = draw.context * N_ACTIONS + draw.action
    size = N_CONTEXTS * N_ACTIONS
    events = np.bincount(cell, draw.loss, size) + 2 * draw.loss.mean()
    mean = (events / (np.bincount(cell, minlength=size) + 2)).reshape(-1, N_ACTIONS)
    return np.eye(N_ACTIONS)[mean.argmin(axis=1)]


def tally_null(*, worlds, n_stays=500, per_stay=2):
    """How often a learned policy is called better than the clinicians when no action matters.

    Returns the share of two-sided 95 % intervals wholly below zero and of one-sided tests at 5 %,
    for SNIPS and for DR.
    """
    below = {"snips": [], "dr": []}
    tested = {"snips": [], "dr": []}
    for seed in _seeds(worlds):
        ward = Ward(seed=seed, effect=0.0, per_stay=per_stay)
        policy_table = learn_greedy(ward.draw(n_stays, seed=1))
        draw = ward.draw(n_stays, seed=0)
        _, predicted = crossfit(draw, seed=seed)
        log = draw.log(ward.propensities, predicted=predicted)
        probabilities = policy_table[draw.context]
        clinicians = logged_risk(log.loss, log.cluster)
        found = {
            "snips": snips(log.loss, view(log, probabilities).weight, log.cluster),
            "dr": estimate_dr(log, probabilities),
        }
        for name, estimate in found.items():
            gain = difference(estimate, clinicians)
            below[name].append(gain.high < 0)
            tested[name].append(gain.p_value <= 0.05)
    return {n: (float(np.mean(below[n])), float(np.mean(tested[n]))) for n in below}


def sections(share=1.0):
    """The part of docs/method/coverage.md that is about wards; `share` of the full number."""

    def worlds(full):
        return max(20, round(full * share))

    parts = [_intro(), _good(worlds), _hard(worlds), _models(worlds), _rest(worlds)]
    return "\n\n".join(parts)


def _intro():
    return (
        "## Wards\n\nThe worlds of `benchmarks/ward.py`: 24 contexts, five actions, a loss of 0 or "
        "1, stays that differ in frailty, and a policy whose true risk is known. The figures come "
        f"from worlds {FIRST_WORLD:,} and up, which took no part in choosing anything."
    )


def _good(worlds):
    n, n_bootstrap = worlds(2000), worlds(400)
    lines = [
        f"### S3: good overlap\n\nSNIPS, nominal 95 %, {n} worlds a row ({n_bootstrap} for the two "
        "bootstraps, 500 replicates each). Goal for the default: 93 to 97, more where "
        "few events are seen. Monte Carlo "
        f"error {_noise(n)} points ({_noise(n_bootstrap)} for the bootstraps).\n",
        "| risk | decisions a stay | stays | effective share | largest weight | default | logit | "
        "Wald | studentised | percentile | width, default |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for settings, n_stays in GOOD:
        quick = {name: INTERVALS[name] for name in ("default", "logit", "Wald")}
        slow = {name: INTERVALS[name] for name in ("studentised", "percentile")}
        tally = tally_snips(settings, n_stays, worlds=n, intervals=quick)
        boot = tally_snips(settings, n_stays, worlds=n_bootstrap, intervals=slow)
        cells = [
            settings["risk"], settings["per_stay"], n_stays, f"{tally.effective_share:.2f}",
            f"{tally.max_weight:.1f}", percent(tally.hits["default"], 0.93, 0.97),
            *(f"{100 * tally.hits[name]:.1f}" for name in ("logit", "Wald")),
            *(f"{100 * share:.1f}" for share in boot.hits.values()),
            f"{tally.widths['default']:.3f}",
        ]  # fmt: skip
        lines.append(table_row(cells))
    return "\n".join(lines)


def _hard(worlds):
    n = worlds(1000)
    lines = [
        f"### S4: poor overlap\n\nClinicians avoid the best action of the sicker contexts; {n} "
        "worlds a row. Goals: of all runs labelled reliable at least 93 % cover; no row that "
        "covers less "
        "than 90 % is labelled reliable in more than 5 %. First with the propensities of all "
        "actions, then with those of the logged actions only.\n",
        "| overlap | risk | decisions a stay | stays | effective share | coverage | reliable | "
        "coverage of those | reliable, logged only | coverage of those |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    sums = np.zeros(4)
    for settings, n_stays in HARD:
        full, part = (tally_snips(settings, n_stays, worlds=n, full=f) for f in (True, False))
        cells = [settings["overlap"], settings["risk"], settings["per_stay"], n_stays]
        cells += [f"{full.effective_share:.2f}", f"{100 * full.hits['default']:.1f}"]
        for place, tally in enumerate((full, part)):
            limit = 0.05 if tally.hits["default"] < 0.9 else 1.0
            cells += [percent(tally.reliable, 0, limit), percent(tally.covered_reliable, 0, 1)]
            sums[2 * place] += tally.reliable
            sums[2 * place + 1] += tally.reliable * np.nan_to_num(tally.covered_reliable)
        lines.append(table_row(cells))
    covered = [percent(sums[i + 1] / sums[i], 0.93, 1.0) for i in (0, 2)]
    lines.append(
        f"\nOf all runs labelled reliable, {covered[0]} % cover with the propensities of all "
        f"actions and {covered[1]} % with those of the logged actions only."
    )
    return "\n".join(lines)


def _models(worlds):
    n = worlds(500)
    lines = [
        f"### S5: known and cross-fitted propensities\n\n{n} worlds a row. Goals: with known "
        "propensities the bias of IPS and DR is within three Monte Carlo errors; with propensities "
        "and outcome model cross-fitted by stay (tables of 24 x 5 and 8 x 5 cells) DR covers 93 "
        "to 97 and its bias is at most 0.005. Bias in thousandths, with its Monte Carlo error.\n",
        "| risk | decisions a stay | stays | IPS bias | DR bias | DR coverage "
        "| DR cross-fitted bias | coverage |",
        "|---|---|---|---|---|---|---|---|",
    ]
    small = (({"risk": 0.5, "per_stay": 1}, 200), ({"risk": 0.5, "per_stay": 1}, 1000))
    for settings, n_stays in (*FITTED, *small):
        tally = tally_bias(settings, n_stays, worlds=n)
        known = [_bias(tally[name], 3 * tally[name].noise) for name in ("ips", "dr")]
        lines.append(
            table_row(
                [
                    settings["risk"],
                    settings["per_stay"],
                    n_stays,
                    *known,
                    f"{100 * tally['dr'].coverage:.1f}",
                    _bias(tally["dr_crossfit"], 0.005),
                    percent(tally["dr_crossfit"].coverage, 0.93, 0.97),
                ]
            )
        )
    lines.append(
        "\nThe goal names no size. We first tried the sizes of S3: as the last two rows show, a "
        "table of 120 propensities cannot be fitted on 200 stays of one decision each, and 1000 "
        "are barely enough, so the twelve rows of the goal use 2000 and 5000."
    )
    return "\n".join(lines)


def _rest(worlds):
    n = worlds(200)
    robust = tally_robust(worlds=n)
    lines = [
        f"### S6: one model, or both, replaced by noise\n\n{n} worlds of 5000 stays. Goals: bias "
        "of DR at most 0.01 with one of them noise; with both, not labelled reliable in 95 %.\n",
        "| noise in place of | DR bias | not labelled reliable |",
        "|---|---|---|",
    ]
    for name, (bias, wary) in robust.items():
        shown = f"{bias:.4f}" if name == "both" or abs(bias) <= 0.01 else f"**{bias:.4f}**"
        lines.append(table_row([name, shown, percent(wary, 0.95 if name == "both" else 0, 1)]))
    n_null = worlds(2000)
    null = tally_null(worlds=n_null)
    lines.append(
        f"\n### S10: a world in which no action matters\n\n{n_null} worlds; a policy learned "
        "greedily on one half is evaluated on the other. Goal: at most 5 % called better (interval "
        "wholly below the clinicians' risk).\n\n| estimator | interval wholly below | one-sided "
        "test at 5 % |\n"
        "|---|---|---|"
    )
    for name, (below, tested) in null.items():
        lines.append(table_row([name, percent(below, 0, 0.05), f"{100 * tested:.1f}"]))
    plain, bounded, bare = tally_confounded(worlds=n)
    lines.append(
        f"\n### Hidden confounding\n\n{n} worlds of 1000 stays in which a hidden state moves "
        "the odds of treatment by a factor of 2 and the log-odds of the loss by 2. Goal: the "
        "sensitivity "
        "interval at gamma = 2 holds the truth in 95 %, the plain interval does not.\n\n"
        "| plain 95 % interval | bounds at gamma 2 | bounds with sampling error |\n|---|---|---|\n"
        + table_row([f"{100 * plain:.1f}", f"{100 * bare:.1f}", percent(bounded, 0.95, 1)])
    )
    return "\n".join(lines)


def _noise(worlds):
    return f"{100 * np.sqrt(0.95 * 0.05 / worlds):.1f}"


def percent(value, low, high):
    if np.isnan(value):
        return "-"
    return f"{100 * value:.1f}" if low <= value <= high else f"**{100 * value:.1f}**"


def _bias(tally, limit):
    shown = f"{1000 * tally.bias:.1f}"
    return f"{shown if abs(tally.bias) <= limit else f'**{shown}**'} ± {1000 * tally.noise:.1f}"


def table_row(cells):
    return "| " + " | ".join(str(cell) for cell in cells) + " |"
