"""How much of what networks learned is kept: shares by hand, plain means, and worlds of noise."""

import numpy as np
import pytest
import torch

from etips.learn.nuisance.shrinkage import (
    MOST,
    action_means,
    best_share,
    log_frequencies,
    share_of_mean,
)


@pytest.mark.parametrize("least", [0.0, 0.3, 1.0, 1.7, MOST])
def test_the_best_share_is_where_the_loss_is_least(least):
    assert best_share(lambda share: (share - least) ** 2) == pytest.approx(least, abs=0.005)


def test_a_share_that_only_hurts_is_none_at_all():
    assert best_share(lambda share: share) == 0.0
    assert best_share(lambda share: 1.0) == 0.0  # nothing is gained


@pytest.mark.parametrize("heat", [0.6, 1.0, 4.0])
def test_the_share_undoes_what_made_logits_too_bold_or_too_shy(heat):
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(20_000, 4, generator=generator, dtype=torch.float64)
    action = torch.multinomial(logits.softmax(-1), 1, generator=generator).squeeze(1)

    def loss(share):
        return float(torch.nn.functional.cross_entropy(share * heat * logits, action))

    assert best_share(loss) == pytest.approx(1 / heat, rel=0.08)


def test_noise_of_each_network_counts_less_in_their_mean():
    """1 / share = a + b / number: with a = 1 and b = 1, one keeps 1/2, two 2/3, five 5/6."""
    assert share_of_mean(0.5, 0.5, 2 / 3, 5) == pytest.approx(5 / 6)
    assert share_of_mean(0.5, 0.5, 2 / 3, 2) == pytest.approx(2 / 3)
    assert share_of_mean(0.8, 0.8, 0.8, 5) == pytest.approx(0.8)  # they err alike


def test_the_share_of_a_mean_has_limits():
    assert share_of_mean(0.0, 0.4, 0.5, 5) == 0.0
    assert share_of_mean(0.5, 0.0, 0.5, 5) == 0.5
    assert share_of_mean(0.7, 0.7, 0.6, 5) == pytest.approx(0.7)  # two are no worse than one
    assert share_of_mean(0.9, 0.5, 2.0, 9) <= MOST
    assert share_of_mean(0.4, 0.4, 0.8, 1) == 0.4


def test_frequencies_are_those_of_the_decisions_that_count():
    action = torch.tensor([0, 0, 1, 2])
    counts = torch.tensor([[1.0, 1.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]])
    found = log_frequencies(action, 3, counts).exp()
    assert found[0].tolist() == pytest.approx([7 / 12, 4 / 12, 1 / 12])
    assert found[1].tolist() == pytest.approx([1 / 6, 1 / 6, 4 / 6])
    assert log_frequencies(action, 3).exp().tolist() == pytest.approx([7 / 15, 4 / 15, 4 / 15])


def test_means_that_differ_by_chance_alone_are_one_mean():
    rng = np.random.default_rng(0)
    action, loss = rng.integers(0, 40, 2000), (rng.random(2000) < 0.1).astype(float)
    found = action_means(loss, action, 40, np.ones((1, 2000)))[0]
    raw = np.array([loss[action == a].mean() for a in range(40)])
    assert found.std() < 0.35 * raw.std()
    assert found.mean() == pytest.approx(loss.mean(), abs=0.01)


def test_means_that_differ_beyond_chance_are_kept():
    rng = np.random.default_rng(0)
    action = rng.integers(0, 4, 4000)
    loss = (rng.random(4000) < np.array([0.1, 0.3, 0.5, 0.9])[action]).astype(float)
    found = action_means(loss, action, 4, np.ones((1, 4000)))[0]
    assert found == pytest.approx([loss[action == a].mean() for a in range(4)], abs=0.005)


def test_an_action_never_taken_has_the_mean_of_all():
    loss, action = np.array([0.0, 1.0, 1.0, 0.0]), np.array([0, 1, 1, 0])
    assert action_means(loss, action, 3, np.ones((1, 4)))[0] == pytest.approx([0.0, 1.0, 0.5])
    assert action_means(np.ones(4), action, 3, np.ones((1, 4)))[0] == pytest.approx([1, 1, 1])
