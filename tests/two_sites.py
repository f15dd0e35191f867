"""Two sites whose patients differ and whose truth is known."""

from dataclasses import dataclass

import numpy as np

from etips.evaluation.log import Log, view
from etips.evaluation.prognosis import cross_fit


def expit(x):
    return 1 / (1 + np.exp(-x))


@dataclass(frozen=True)
class TwoSites:
    """One drug, given to the severe; it helps the severe and harms the others.

    `shift` moves the patients of site B in two of four features; `effect` is what site B adds to
    the logit of the loss, which no weighting of patients can bring over.
    """

    shift: float = 0.8
    effect: float = 0.0
    per_stay: int = 1

    def draw(self, n, seed):
        rng = np.random.default_rng(seed)
        stays = np.repeat(np.arange(n), self.per_stay)
        site = np.repeat(rng.random(n) < 0.5, self.per_stay)
        own = np.repeat(rng.normal(size=(n, 4)), self.per_stay, axis=0)
        x = own + 0.3 * rng.normal(size=own.shape)
        x[site, :2] += self.shift
        chance = self.propensity(x)
        action = (rng.random(len(x)) < chance).astype(int)
        loss = (rng.random(len(x)) < self.risk(x, action, site)).astype(float)
        table = np.stack([1 - chance, chance], axis=1)
        log = Log(
            loss=loss,
            action=action,
            propensity=table[np.arange(len(x)), action],
            cluster=stays,
            n_actions=2,
            propensities=table,
            features=x,
            known=True,
        )
        return log, site, x

    def propensity(self, x):
        return 0.2 + 0.6 * expit(x[:, 0])

    def risk(self, x, action, site):
        benefit = 0.8 * np.tanh(x[:, 0])
        return expit(-1.0 + 0.7 * x[:, 0] + 0.5 * x[:, 1] - action * benefit + self.effect * site)

    def truth(self, choose, site, n=400_000):
        """Risk of a policy at a site: `choose` gives the chance of the drug; None, as logged."""
        rng = np.random.default_rng(99)
        x = rng.normal(size=(n, 4)) + 0.3 * rng.normal(size=(n, 4))
        x[:, :2] += self.shift if site else 0.0
        drug = self.propensity(x) if choose is None else choose(x)
        here = np.full(n, site)
        given, not_given = self.risk(x, 1, here), self.risk(x, 0, here)
        return float((drug * given + (1 - drug) * not_given).mean())


def severe(x):
    return (x[:, 0] > 0).astype(float)


def always(x):
    return np.ones(len(x))


def never(x):
    return np.zeros(len(x))


def seen(log, x, choose):
    drug = choose(x)
    return view(log, np.stack([1 - drug, drug], axis=1))


def prognosis_of(log, x, *choices):
    """What is to be expected of the patients: whatever is done, and by what policies would do."""
    expected = cross_fit(x, log.loss, log.clusters, log.action, log.n_actions)
    columns = [expected.plain]
    for choose in choices:
        drug = choose(x)
        columns.append((1 - drug) * expected.by_action[:, 0] + drug * expected.by_action[:, 1])
    return np.stack(columns, axis=1)
