"""Are explanations right? Worlds whose truth is known, networks that know nothing, other seeds.

    python -m benchmarks.explanations fit FOLDER     # policies of five seeds on ICU-Sepsis, lag 0
    python -m benchmarks.explanations check FOLDER   # deletion, insertion, random weights, seeds
    python -m benchmarks.explanations fit-two FOLDER 10000 [LOG]   # a clinic: two features matter
    python -m benchmarks.explanations two FOLDER
    python -m benchmarks.explanations tree FOLDER    # rules on ICU-Sepsis, and their true risk
    python -m benchmarks.explanations best           # the best rules there are, by trying all
    python -m benchmarks.explanations speed FOLDER   # one decision, as a what-if asks

`fit`, `fit-two`, `tree` and `best` need torch, numpy and safetensors alone; the others Captum too.
"""

import os
import sys
import time
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import torch

from etips.data.coded import Truth
from etips.data.schema import Schema
from etips.data.trajectories import Trajectories
from etips.learn import DoublyRobust, EtIPS, PredictiveModel
from etips.models.bundle import Bundle
from etips.policies.policy import FittedPolicy
from etips.policies.policy_files import load_policy, save_policy
from etips.worlds.icu_sepsis import clinicians, exact_risk, expected_loss, occupancy, simulate

STAYS, SEEDS = 5000, 5
METHODS = {"etips": EtIPS, "dr": DoublyRobust, "imitation": PredictiveModel}
BINS = 16


def icu(n: int = STAYS, seed: int = 0) -> Trajectories:
    """A log of ICU-Sepsis that shows what the clinicians saw; nobody knows the propensities."""
    return replace(simulate(n, seed=seed, lag=0), propensity=None)


def fit_seed(seed: int, folder: str) -> None:
    """One policy of each method."""
    train = icu()
    for name, learner in METHODS.items():
        started = time.perf_counter()
        policy = learner(seed=seed).fit(train).policy_
        save_policy(policy, Path(folder) / f"{name}-{seed}", overwrite=True)
        print(name, seed, policy.kind, f"{time.perf_counter() - started:.0f} s", flush=True)


def true_risk(policy: FittedPolicy, data: Trajectories) -> float:
    """Of a policy as it is followed; where it abstains the clinicians decide."""
    return data.true_risk(policy.deployed(data).left_to(data.true_logging()))


# A clinic in which two features matter


def two_features(n: int, seed: int, n_features: int = 5, steps: int = 2) -> Trajectories:
    """Which of three actions helps, and which clinicians like, hangs on x0 and x1 alone."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n * steps, n_features)).astype(np.float32)
    likes = 0.8 * np.stack([x[:, 0], x[:, 1], -x[:, 0] - x[:, 1]], axis=1)
    logging = np.exp(likes) / np.exp(likes).sum(axis=1, keepdims=True)
    logging = 0.6 * logging + 0.4 / 3
    gain = np.tanh(np.stack([x[:, 0], x[:, 1], -0.7 * (x[:, 0] + x[:, 1])], axis=1))
    expected = 0.5 - 0.35 * gain
    action = (logging.cumsum(axis=1) < rng.random((len(x), 1))).sum(axis=1)
    loss = (rng.random(len(x)) < expected[np.arange(len(x)), action]).astype(np.float64)
    return Trajectories(
        sequence=x,
        offsets=np.arange(n + 1) * steps,
        schema=Schema(sequence=tuple(f"x{i}" for i in range(n_features)), n_actions=3, lag=0),
        action=action,
        loss=loss,
        truth=Truth(np.arange(len(x), dtype=np.int32), expected, logging),
    )


def fit_two(folder: str, n: int, log: int = 0) -> None:
    """Policies that learned in that clinic; how much noise a log holds differs from log to log."""
    for name, learner in METHODS.items():
        policy = learner(seed=0).fit(two_features(n, log)).policy_
        save_policy(policy, Path(folder) / f"two-{name}-{n}-log-{log}", overwrite=True)


def two(folder: str) -> None:
    """Share of the attribution that the two features get."""
    from etips.explanation.attribution import attribute_overall

    test = two_features(1000, 1)
    for place in sorted(Path(folder).glob("two-*")):
        policy = load_policy(place)
        if policy.kind in ("constant", "imitation"):
            print(place.name, policy.kind)
            continue
        overall = attribute_overall(policy, test)
        share = {own.name: own.share for own in overall.columns}
        print(
            f"{place.name} ({policy.kind}): x0 and x1 take "
            f"{share['x0'] + share['x1']:.1%}; worst completeness error "
            f"{overall.completeness_error:.2%}; true risk {true_risk(policy, test):.4f}, "
            f"clinicians {test.true_risk(test.true_logging()):.4f}",
            flush=True,
        )


# Deletion, insertion, random weights


def curves(policy: FittedPolicy, data: Trajectories, n: int = 120) -> dict[str, float]:
    """Areas under deletion and insertion curves, by attribution and in random order.

    Inputs (feature at a step) are put to the average patient's one after another. The preference
    for the likeliest action over the next is 1 for the patient and 0 for the average one.
    """
    from etips.explanation.attribution import attribute_inputs
    from etips.explanation.preference import Preference

    preference = Preference(policy)
    rng = np.random.default_rng(0)
    histories = preference.read(data)
    histories = histories.take(rng.permutation(len(histories.last))[:n])
    two = np.stack(preference.two_likeliest(histories), axis=1)
    values = attribute_inputs(preference, histories, two[:, 0], two[:, 1])
    step, _ = preference.reference()
    areas: dict[str, list[float]] = {}
    for row in range(n):
        whole = values.preference[row] - values.reference[row]
        if abs(whole) < 0.05:
            continue
        own = histories.take(np.array([row]))
        scores = values.steps[row, : own.steps.shape[1]].ravel() * np.sign(whole)
        for name, order in (
            ("attribution", np.argsort(-scores)),
            ("random", rng.permutation(scores.size)),
        ):
            marks = np.linspace(0, scores.size, 21).round().astype(int)
            gone = np.zeros((21, scores.size), bool)
            for line, mark in enumerate(marks):
                gone[line, order[:mark]] = True
            flat = own.steps.reshape(1, -1).repeat(21, 1)
            base = step.repeat(own.steps.shape[1])[None]
            pair = [torch.full((21,), int(two[row, k])) for k in (0, 1)]
            for way, mask in (("deletion", gone), ("insertion", ~gone)):
                steps = torch.where(torch.from_numpy(mask), base, flat).view(
                    21, *own.steps.shape[1:]
                )
                static, last = own.static.repeat(21, 1), own.last.repeat(21)
                with torch.no_grad():
                    changed = replace(own, steps=steps, static=static, last=last)
                    said = preference.between(changed, *pair).numpy()
                share = (said - values.reference[row]) / whole
                areas.setdefault(f"{way}, {name}", []).append(float(np.clip(share, -1, 2).mean()))
    return {name: float(np.mean(own)) for name, own in areas.items()}


def against_random_weights(
    policy: FittedPolicy, data: Trajectories, n: int = 200
) -> dict[str, float]:
    """Rank correlation with the explanation of networks whose weights were drawn afresh.

    Also for mean sizes divided by how far each column lies from the average patient.
    """
    from etips.explanation.attribution import attribute_inputs, rank_correlation
    from etips.explanation.preference import Preference

    speaks = "propensity" if policy.kind == "imitation" else "networks"
    bundle = getattr(policy, speaks)
    assert isinstance(bundle, Bundle)
    drawn = Bundle.start(bundle.network, list(range(900, 900 + bundle.n_members)))
    either = [Preference(policy), Preference(replace(policy, **{speaks: drawn}))]
    histories = either[0].read(data)
    histories = histories.take(np.random.default_rng(1).permutation(len(histories.last))[:n])
    two = np.stack(either[0].two_likeliest(histories), axis=1)
    tables = [
        attribute_inputs(own, histories, two[:, 0], two[:, 1]).steps.sum(axis=1) for own in either
    ]
    signed = [rank_correlation(one, other) for one, other in zip(*tables, strict=True)]
    sizes = [np.abs(table).mean(axis=0) for table in tables]
    inside = torch.arange(histories.steps.shape[1]) <= histories.last[:, None]
    away = (histories.steps - either[0].reference()[0]).abs() * inside[:, :, None]
    distance = away.sum(1).mean(0).clamp(min=1e-12).numpy()
    return {
        "signed, mean over decisions": float(np.mean(signed)),
        "mean sizes of the columns": rank_correlation(*sizes),
        "the same by distance": rank_correlation(*(size / distance for size in sizes)),
    }


def check(folder: str, method: str) -> None:
    """What is asked of explanations, on the policies of one method."""
    from etips.explanation.attribution import agree, attribute_overall

    test = icu(500, seed=99)
    policies = [load_policy(Path(folder) / f"{method}-{seed}") for seed in range(SEEDS)]
    usable = [own for own in policies if own.kind not in ("constant", "uniform")]
    print(method, "kinds:", [own.kind for own in policies])
    print("true risks:", [round(true_risk(own, test), 4) for own in policies])
    if not usable:
        return
    overall = [attribute_overall(own, test) for own in usable]
    print("worst completeness error:", max(own.completeness_error for own in overall))
    print("networks of one policy, first ten in common:", [own.networks_agree for own in overall])
    if len(usable) > 1:
        found = agree([own.strengths() for own in overall])
        print(f"over {found.n_policies} seeds: first ten in common {found.first_in_common:.2f}, "
              f"rank correlation {found.rank_correlation:.2f}")  # fmt: skip
    print("strongest:", [own.name for own in overall[0].columns[:10]])
    print("areas:", {k: round(v, 3) for k, v in curves(usable[0], test).items()})
    print("random weights:", against_random_weights(usable[0], test))


# The tree


def tree(folder: str, n_stays: str = str(STAYS), seed: int = 0) -> None:
    """Rules of up to three questions learned on the log, and their true risk."""
    from etips.explanation.policy_tree import PolicyTree

    train, test = icu(int(n_stays)), icu(4000, seed=99)
    place = Path(folder) / f"etips-{seed}"
    known = place.is_dir() and int(n_stays) == STAYS
    policy = load_policy(place) if known else EtIPS(seed=seed).fit(train).policy_
    print(f"{n_stays} stays, the policy is a {policy.kind}", flush=True)
    for depth in (3,):
        started = time.process_time()
        own = PolicyTree(depth=depth, seed=seed).fit(policy, train)
        print(f"depth {depth}: {own.sentence}; {time.process_time() - started:.0f} s of CPU")
        for rule in own.rules():
            print("   ", rule)
        states = simulate(1, seed=0, lag=0).sequence.table
        bare = np.eye(25)[own.tree.actions(states)]
        same = float((own.policy_.predict(test) == policy.predict(test)).mean())
        print(
            f"  true risk as followed {true_risk(own.policy_, test):.4f}, without its floor on "
            f"support {exact_risk(bare):.4f}; the network's {true_risk(policy, test):.4f}; "
            f"clinicians {test.true_risk(test.true_logging()):.4f}; agreement {same:.0%}",
            flush=True,
        )


def _best_below(task: tuple[int, int]) -> tuple[float, int, int]:
    """The best tree of three questions that starts with one of them."""
    from etips.explanation.tree_search import Question

    feature, edge = task
    question = Question(feature, edge, False, 0.0)
    rows = np.arange(len(_SEARCH.scores))
    low = _SEARCH.is_low(rows, question)
    worth = 0.0
    for side in (rows[low], rows[~low]):
        alone = float(_SEARCH.scores[side].sum(axis=0).min()) if side.size else 0.0
        found = _SEARCH.first_questions(side, 2) if side.size > 1 else []
        worth += min([alone, *(own.worth for own in found[:1])])
    return worth, feature, edge


def best(bins: int | str = BINS) -> None:
    """The least risk of any tree of up to three questions, on the exact model."""
    global _SEARCH  # forked processes read it
    from etips.explanation.tree_search import Cuts, Search

    table = simulate(1, seed=0, lag=0).sequence.table[:713]
    visits, loss = occupancy(lag=0)[:713], expected_loss()[:713]
    scores = visits[:, None] * loss
    floored = np.where(
        clinicians()[:713] >= 0.01, loss, (clinicians()[:713] * loss).sum(1)[:, None]
    )
    for name, own in (("any action", scores), ("with support", visits[:, None] * floored)):
        cuts = Cuts.of(table, bins=int(bins))
        _SEARCH = Search(cuts, own, np.ones(713), 1.0)
        print(f"{name}: one action for everybody {own.sum(axis=0).min():.4f}")
        for depth in (1, 2):
            actions = _SEARCH.grow(depth).actions(table)
            print(f"  best of depth {depth}: {own[np.arange(713), actions].sum():.4f}")
        tasks = [(f, e) for f in range(len(cuts.edges)) for e in range(len(cuts.edges[f]))]
        with get_context("fork").Pool(os.cpu_count()) as pool:
            found = min(pool.imap_unordered(_best_below, tasks, chunksize=4))
        greedy = _SEARCH.grow(3).actions(table)
        print(f"  best of depth 3, by trying all: {found[0]:.4f}; with look-ahead: "
              f"{own[np.arange(713), greedy].sum():.4f}", flush=True)  # fmt: skip
    print(f"best action per state {scores.min(axis=1).sum():.4f}, clinicians "
          f"{exact_risk(clinicians()):.4f}")  # fmt: skip


# Speed


def speed(folder: str) -> None:
    """Milliseconds of CPU for one decision: attribution, similar patients, what to measure."""
    from etips.explanation.attribution import attribute
    from etips.explanation.measure_next import what_to_measure
    from etips.explanation.similar import Neighbourhood, similar_decisions

    log = icu(3000, seed=5)
    policy = load_policy(Path(folder) / "etips-0")
    started = time.process_time()
    neighbours = Neighbourhood.of(policy, log)
    print(f"made ready once in {time.process_time() - started:.1f} s of CPU")
    stays = [log.subset([int(k)]) for k in np.flatnonzero(np.diff(log.offsets) >= 8)[:40]]
    works = {
        "recommendation": lambda stay, _: policy.answer(stay),
        "attribution": lambda stay, step: attribute(policy, stay, step, 0, 6),
        "similar decisions": lambda stay, step: similar_decisions(neighbours, stay, step),
        "what to measure": lambda stay, step: what_to_measure(neighbours, stay, step),
    }
    told = [
        similar_decisions(neighbours, stay, int(step)).people
        for stay in stays
        for step in stay.decisions().step[:3]
    ]
    share = np.mean([people is not None for people in told])
    print(f"decisions with eleven similar people or more: {share:.0%}")
    for name, work in works.items():
        each = []
        for stay in stays:
            step = int(stay.decisions().step[-1])
            started = time.process_time()
            work(stay, step)
            each.append(time.process_time() - started)
        print(f"{name}: median {np.median(each) * 1000:.0f} ms, slowest {max(each) * 1000:.0f} ms")


def main() -> None:
    """Run what is asked for."""
    what, *rest = sys.argv[1:] or ["best"]
    if what == "fit":
        seeds = [int(rest[1])] if len(rest) > 1 else range(SEEDS)
        for seed in seeds:
            fit_seed(seed, rest[0])
    elif what == "fit-two":
        fit_two(rest[0], *map(int, rest[1:]))
    elif what == "check":
        for method in rest[1:] or METHODS:
            check(rest[0], method)
    else:
        {"two": two, "tree": tree, "best": best, "speed": speed}[what](*rest)


if __name__ == "__main__":
    main()
