"""The policies of a study's folds: as files between its tasks, and put together as one policy."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from etips.data.decisions import Bools, Floats
from etips.policies.deployed import Deployed
from etips.results.followed_policies import Followed
from etips.studies.study_data import load_array, save_array

POLICY, DRAWN, ABSTAINED = "policy.npy", "drawn.npy", "abstained.npy"
"""What a task leaves of its policy, where it was held out: what it does, the probabilities that it
would draw from, and where it leaves the decision to the clinicians."""


EXTERNAL = "external-"
"""Before the names of the same files about the decisions of another source."""


def save_followed(policy: Followed, folder: Path, *, prefix: str = "") -> None:
    """Write what a fold's policy does at the decisions it was held out from.

    Args:
        policy: What comes of following it.
        folder: Of the task.
        prefix: Of the files' names.
    """
    drawn = policy.drawn or policy.deployed
    save_array(folder / f"{prefix}{POLICY}", policy.deployed.probabilities)
    save_array(folder / f"{prefix}{DRAWN}", drawn.probabilities)
    save_array(folder / f"{prefix}{ABSTAINED}", policy.deployed.abstained.astype(np.float64))


def load_followed(folder: Path, *, prefix: str = "") -> Followed:
    """Read what `save_followed` wrote."""
    abstained = load_array(folder / f"{prefix}{ABSTAINED}") != 0
    deployed, drawn = (load_array(folder / f"{prefix}{name}") for name in (POLICY, DRAWN))
    return _followed(deployed, drawn, abstained)


def mix_folds(policies: Sequence[Followed], clinicians: Floats | None) -> Followed:
    """One of the folds' policies, drawn at random: its risk is the mean of their risks.

    It abstains where all of them do; where only some do, those do as the clinicians would.

    Args:
        policies: All about the same decisions.
        clinicians: Propensity of every action, shape (n_decisions, n_actions); if it is not known,
            what each policy takes it to be.
    """
    return _followed(
        np.mean([_probabilities(own.deployed, clinicians) for own in policies], axis=0),
        np.mean(
            [_probabilities(own.drawn or own.deployed, clinicians) for own in policies], axis=0
        ),
        np.all([own.deployed.abstained for own in policies], axis=0),
    )


def join_folds(policies: Sequence[Followed], folds: Sequence[Bools]) -> Followed:
    """Every decision answered by the policy of the fold that held it out.

    Args:
        policies: One a fold, about the decisions that it held out.
        folds: Which decisions those are, shape (n_decisions,) each.
    """
    n, n_actions = len(folds[0]), policies[0].deployed.probabilities.shape[1]
    deployed, drawn, abstained = np.empty((n, n_actions)), np.empty((n, n_actions)), np.empty(n)
    for policy, mask in zip(policies, folds, strict=True):
        deployed[mask] = policy.deployed.probabilities
        drawn[mask] = (policy.drawn or policy.deployed).probabilities
        abstained[mask] = policy.deployed.abstained
    return _followed(deployed, drawn, abstained != 0)


def _followed(deployed: Floats, drawn: Floats, abstained: Bools) -> Followed:
    same = np.array_equal(deployed, drawn)
    return Followed(Deployed(deployed, abstained), None if same else Deployed(drawn, abstained))


def _probabilities(policy: Deployed, clinicians: Floats | None) -> Floats:
    return policy.probabilities if clinicians is None else policy.left_to(clinicians)
