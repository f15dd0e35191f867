"""What a policy makes of an action against another."""

from dataclasses import replace

import numpy as np
import torch

from etips.explanation.preference import Preference
from etips.learn import QLearning


def test_the_preference_of_a_softmax_is_the_mean_log_odds_of_its_networks(policy, longest):
    preference = Preference(policy)
    own = preference.read(longest)
    n = len(own.last)
    pair = torch.zeros(n, dtype=torch.long), torch.ones(n, dtype=torch.long)
    here = preference.by_networks(own.steps, own.static, own.last, *pair)
    each = []
    for member in range(policy.networks.n_members):
        single = replace(policy, networks=policy.networks.select([member]), support=0.0)
        p = single.predict_proba(longest)
        each.append(np.log(p[:, 0] / p[:, 1]))
    np.testing.assert_allclose(here, np.mean(each, axis=0), atol=1e-4)


def test_it_answers_as_the_policy_does(policy, other_policies, log):
    for own in (policy, *other_policies.values()):
        preference = Preference(own)
        said, wanted = preference.answer(preference.read(log)), own.answer(log)
        np.testing.assert_allclose(said.probabilities, wanted.probabilities, atol=1e-5)
        assert (said.abstained == wanted.abstained).all()


def test_the_average_patient_is_the_training_mean(policy, log):
    preference = Preference(policy)
    step, static = preference.reference()
    assert step.tolist() == [0, 0, 0, 0]  # all of them standardised
    row = preference.reference_row()
    np.testing.assert_allclose(row[:4], log.sequence.mean(axis=0), atol=1e-4)
    assert len(static) == 2


def test_a_policy_that_reads_a_summary_answers_as_it_does(log):
    policy = QLearning().fit(log).fitted_policy()
    preference = Preference(policy)
    said, wanted = preference.answer(preference.read(log)), policy.answer(log)
    np.testing.assert_allclose(said.probabilities, wanted.probabilities, atol=1e-5)
