"""What differs between the data a policy learned from and those it is judged on.

The policy brings aggregates: mean and spread of each feature (its scaler), how often each action
was taken and what came of it (`Origin`), and its model of the clinicians. No stay is needed.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from etips.data.decisions import Floats
from etips.data.scale import Scaler
from etips.data.trajectories import Trajectories
from etips.disclosure import any_few, hide_together
from etips.evaluation.log import Log
from etips.policies.policy import FittedPolicy
from etips.results.data_summary import summarize_data
from etips.results.followed_policies import Policy, as_fitted
from etips.results.records import ActionShift, Distance, FeatureShift, ShiftResult, existing

APART = 0.25
"""Standard deviations from which the means of a feature are called apart."""

UNLIKE = 4.0
"""Standard deviations from where a patient is unlike those learned from."""

_SHOWN = 12
_FAR_APART, _FAR_UNLIKE, _FAR_PRACTICE = 1.0, 0.1, 0.3
_NEAR_PRACTICE, _NEAR_SHARE = 0.1, 0.1
_OTHER_UNIT = 5.0


def find_shift(policies: Mapping[str, Policy], data: Trajectories, log: Log) -> ShiftResult | None:
    """The shift of the first policy that was learned on data of another source, if there is one."""

    def source(provenance: Mapping[str, str]) -> dict[str, str]:
        """Simulations with another seed are of the same place."""
        return {name: value for name, value in provenance.items() if name != "seed"}

    for name, policy in policies.items():
        fitted = as_fitted(policy)
        if fitted is None or fitted.scaler is None or fitted.origin is None:
            continue
        if source(fitted.schema.provenance) != source(data.schema.provenance):
            return existing(_shift(name, fitted, data, log))
    return None


def _shift(name: str, policy: FittedPolicy, data: Trajectories, log: Log) -> ShiftResult:
    assert policy.origin is not None
    features, stated = _features(policy, data), None
    practice = None
    if policy.propensity is not None:
        stated = policy.propensities(data)
        # total variation: what was done, what the others would have done
        taken = np.bincount(data.logged_action, minlength=data.n_actions) / data.n_decisions
        practice = float(np.abs(taken - stated.mean(axis=0)).sum() / 2)
    unlike, n = _unlike(policy, data), data.n_decisions
    n_unlike = round(unlike * n)
    n_apart = sum(abs(feature.difference) > APART for feature in features)
    largest = max((abs(feature.difference) for feature in features), default=0.0)
    few = n_apart <= _NEAR_SHARE * max(len(features), 1)
    distance: Distance = "near" if few and (practice or 0.0) <= _NEAR_PRACTICE else "moved"
    if largest > _FAR_APART or unlike > _FAR_UNLIKE or (practice or 0.0) > _FAR_PRACTICE:
        distance = "far"
    return ShiftResult(
        policy=name,
        there=dict(policy.schema.provenance),
        here=dict(data.schema.provenance),
        features=tuple(features[:_SHOWN]),
        n_features=len(features),
        n_apart=n_apart,
        unlike=None if any_few((n_unlike, n - n_unlike)) else unlike,
        actions=_actions(policy, data, stated),
        practice=practice,
        log_loss_there=None if stated is None else _log_loss(stated, data),
        log_loss_here=None if log.propensities is None else _log_loss(log.propensities, data),
        loss_there=policy.origin.mean_loss,
        loss_here=summarize_data(data).mean_loss,
        distance=distance,
        sentences=_sentences(distance, n_apart, practice, features),
    )


def _features(policy: FittedPolicy, data: Trajectories) -> list[FeatureShift]:
    """Every feature, those that differ most first."""
    assert policy.scaler is not None
    there = policy.scaler
    here = Scaler(log=there.log, leave=there.leave).fit(data)
    found = []
    for name, mean in there.mean_.items():
        spread, other = there.scale_[name], here.scale_[name]
        if name in there.left_:  # 0 or 1: the spread follows from the mean
            spread = other = max(float(np.sqrt(mean * (1 - mean))) if 0 <= mean <= 1 else 1.0, 0.05)
        found.append(FeatureShift(name, (here.mean_[name] - mean) / spread, other / spread))
    return sorted(found, key=lambda feature: -abs(feature.difference))


def _unlike(policy: FittedPolicy, data: Trajectories) -> float:
    """Share of decisions at which some feature just seen is far from all that was learned from."""
    assert policy.scaler is not None
    scaled = policy.scaler.transform(data)
    left = np.array([name in policy.scaler.left_ for name in data.schema.sequence], bool)
    rows = np.maximum(data.seen_rows, 0)
    beyond = (np.abs(scaled.sequence[rows][:, ~left]) > UNLIKE).any(axis=1)
    return float(beyond.mean())


def _actions(
    policy: FittedPolicy, data: Trajectories, stated: Floats | None
) -> tuple[ActionShift, ...]:
    assert policy.origin is not None
    k, action = data.n_actions, data.logged_action
    counts = np.bincount(action, minlength=k)
    pairs = np.unique(np.stack([action, data.cluster]), axis=1)
    hidden = hide_together(np.bincount(pairs[0], minlength=k), counts)
    expected = None if stated is None else stated.mean(axis=0)
    return tuple(
        ActionShift(
            name=data.schema.action_name(number),
            there=policy.origin.action_shares[number],
            here=None if hidden[number] else float(counts[number] / max(counts.sum(), 1)),
            expected=None if expected is None else float(expected[number]),
        )
        for number in range(k)
    )


def _log_loss(stated: Floats, data: Trajectories) -> float:
    chance = stated[np.arange(data.n_decisions), data.logged_action]
    return float(-np.log(np.maximum(chance, 1e-6)).mean())


_WORDS: dict[Distance, str] = {
    "near": "The two are much alike.",
    "moved": "The two differ in patients or in what is done.",
    "far": "The two are far apart.",
}


def _sentences(
    distance: Distance, n_apart: int, practice: float | None, features: Sequence[FeatureShift]
) -> tuple[str, ...]:
    """What the shift means for the estimate, in words."""
    said = [
        f"{_WORDS[distance]} {n_apart} of {len(features)} features have means more "
        f"than {APART:g} standard deviations apart."
    ]
    if practice is not None:
        said.append(
            f"Of the decisions here {practice:.0%} would have to change for actions to be as "
            "frequent as the clinicians there would have made them with these patients."
        )
    odd = [feature.name for feature in features if abs(feature.difference) > _OTHER_UNIT]
    if odd:
        named = ", ".join(odd[:3])
        said.append(f"In another unit? More than {_OTHER_UNIT:g} standard deviations: {named}.")
    said.append(
        "The estimate is of these patients, from what their own clinicians did; nothing that was "
        "estimated where the policy was learned enters it, so that it holds here as far as its "
        "verdict says."
    )
    command = "etips compare RUN THERE --external HERE"
    if distance == "near":
        said.append(f"An estimate made there should come near this one; {command} compares them.")
    else:
        said.append(
            "What was estimated there holds there. It carries over to here no further than "
            f"patients are alike; {command} says how far."
        )
    return tuple(said)
