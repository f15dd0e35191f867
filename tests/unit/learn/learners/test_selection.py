"""Which candidate becomes the policy: made-up logs, and worlds with nothing to find."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from small_worlds import training

from etips.learn import TIPS
from etips.learn.fitting.candidates import RARE_TOO, REGRESSION, blank, judge
from etips.learn.fitting.risk_totals import Weighing
from etips.learn.learners.selection import (
    CHANCE,
    choose,
    gaps_to_clinicians,
    luckiest,
    risk_of_choosing,
)
from etips.models.encoders.gru import GRU
from etips.worlds.clinic import Clinic

N_ACTIONS = 4


class Trial:
    """A trial of four arms, one decision a patient, and policies that are judged on it.

    Args:
        risk: Of each arm.
        n: Patients.
        seed: Of the trial.
    """

    def __init__(self, risk=(0.5, 0.5, 0.5, 0.5), n=600, seed=0):
        rng = np.random.default_rng(seed)
        self.action = rng.integers(0, N_ACTIONS, n)
        self.kind = rng.integers(0, 2, n)
        self.loss = (rng.random(n) < np.asarray(risk)[self.action]).astype(float)
        self.fold = rng.permutation(n) % 5
        self.rng, self.n = rng, n
        self.candidates, self.chosen = [], []

    def rule(self, chosen, *, acts="draws", translation=0.5):
        self.candidates.append(blank(translation, None, acts))
        self.chosen.append(np.asarray(chosen, float))
        return self

    def regression(self, chosen, form=REGRESSION):
        self.rule(chosen, acts="likeliest", translation=np.nan)
        self.candidates[-1] = replace(self.candidates[-1], form=form)
        return self

    def noise(self):
        """A rule that tells nothing from nothing."""
        return self.rule(self.rng.integers(0, N_ACTIONS, self.n) == self.action)

    def constants(self):
        for action in range(N_ACTIONS):
            self.candidates.append(blank(np.nan, action, "likeliest"))
            self.chosen.append((self.action == action).astype(float))
        return self

    def judged(self):
        clinicians = blank(np.nan, None)
        object.__setattr__(clinicians, "clinicians", True)
        weighing = Weighing(np.full(self.n, 1 / N_ACTIONS), self.loss, np.arange(self.n))
        every = [*self.chosen, np.full(self.n, 1 / N_ACTIONS)]
        return judge([*self.candidates, clinicians], weighing.totals(every))


def chosen_of(trial, selection="held-out"):
    judged = trial.judged()
    return judged.candidates[choose(judged, selection)]


def almost_right(ahead):
    """A trial with one good arm, and who takes it but for a few, or one, whom it was good for."""
    trial = Trial(risk=(0.2, 0.8, 0.8, 0.8), n=2_000)
    told = trial.action == 0
    told[np.flatnonzero(told & (trial.loss == 0))[: ahead + 1]] = False
    return trial, told


def test_where_nothing_is_better_the_clinicians_are_imitated():
    false = 0
    for seed in range(60):
        trial = Trial(seed=seed)
        for _ in range(6):
            trial.noise()
        false += not chosen_of(trial.constants()).clinicians
    assert false <= 60 * (CHANCE + 0.12)  # three standard errors


def test_constants_of_many_actions_ask_no_more_of_a_rule():
    """Twenty that did nothing kept a rule out that was better by nearly two standard errors."""
    trial = Trial(risk=(0.46, 0.5, 0.5, 0.5), n=2000, seed=0)
    alone = trial.rule(trial.action == 0, acts="likeliest")
    gap = gaps_to_clinicians(alone.judged())[0]
    assert -2.2 < gap.value / gap.std_error < -1.6
    for action in range(20):
        trial.candidates.append(blank(np.nan, action, "likeliest"))
        trial.chosen.append((trial.rng.integers(0, N_ACTIONS, trial.n) == trial.action) * 1.0)
    assert chosen_of(trial).is_rule


def test_a_clearly_better_constant_is_kept():
    trial = Trial(risk=(0.5, 0.2, 0.5, 0.5)).noise().constants()
    assert chosen_of(trial).action == 1


def test_a_rule_has_to_beat_the_best_constant_too():
    trial = Trial(risk=(0.5, 0.2, 0.5, 0.5))
    nearly = np.where(trial.rng.random(trial.n) < 0.9, trial.action == 1, trial.action == 2)
    assert chosen_of(trial.rule(nearly).constants()).action == 1


def test_the_luckiest_of_equal_constants_does_not_push_out_a_rule_that_is_as_good():
    """All but one action harm alike, less than clinicians do; so does a rule that mixes them."""
    rules = 0
    for seed in range(20):
        trial = Trial(risk=(0.3, 0.3, 0.3, 0.9), n=400, seed=seed)
        mixed = trial.rng.integers(0, 3, trial.n) == trial.action
        rules += chosen_of(trial.rule(mixed, acts="likeliest").constants()).is_rule
    assert rules >= 8  # with the luck left in: 5


def test_a_rule_that_knows_whom_to_give_what_is_kept():
    trial = Trial()
    best = trial.kind * 2
    trial.loss = (trial.rng.random(trial.n) < np.where(trial.action == best, 0.2, 0.5)) * 1.0
    found = chosen_of(trial.noise().rule(trial.action == best, acts="likeliest").constants())
    assert (found.is_rule, found.acts) == (True, "likeliest")


def test_of_two_forms_the_better_is_kept():
    """Drawn it errs in a third of the patients, its likeliest action never."""
    trial = Trial(n=3000)
    best = trial.kind * 2
    trial.loss = (trial.rng.random(trial.n) < np.where(trial.action == best, 0.2, 0.5)) * 1.0
    trial.rule(np.where(trial.action == best, 0.7, 0.1))
    assert chosen_of(trial.rule(trial.action == best, acts="likeliest")).acts == "likeliest"


def test_drawing_is_kept_where_the_likeliest_action_is_worse_beyond_noise():
    """The likeliest action is the same for all and harms half of them; what is drawn suits each."""
    trial = Trial(n=4000)
    best = trial.kind * 2
    trial.loss = (trial.rng.random(trial.n) < np.where(trial.action == best, 0.1, 0.5)) * 1.0
    trial.rule(np.where(trial.action == best, 0.4, 0.2))
    assert chosen_of(trial.rule(trial.action == 1, acts="likeliest")).acts == "draws"


@pytest.mark.parametrize(
    ("lower", "form"),
    [
        ((0.25, 0.2, 0.5, 0.5), RARE_TOO),  # not worse: the lower floor was borne out before
        ((0.2, 0.4, 0.5, 0.5), REGRESSION),  # worse beyond noise: the log objects
    ],
)
def test_a_regression_goes_down_to_its_lower_floor_unless_the_log_objects(lower, form):
    trial = Trial(risk=lower, n=2000)
    trial.regression(trial.action == 0)
    trial.regression(trial.action == 1, RARE_TOO)
    assert chosen_of(trial).form == form


def test_a_regression_that_is_better_with_either_floor_is_better():
    """With the lower one it rests on too few to show it, with the usual one it does."""
    trial = Trial(risk=(0.4, 0.5, 0.5, 0.5), n=2000)
    few = np.zeros(trial.n)
    for loss, n in ((0, 22), (1, 18)):
        few[np.flatnonzero((trial.action == 0) & (trial.loss == loss))[:n]] = 12.0
    trial.regression(trial.action == 0).regression(few, RARE_TOO)
    gaps = gaps_to_clinicians(trial.judged())
    assert gaps[0].value / gaps[0].std_error < -3
    assert gaps[1].value / gaps[1].std_error > -1
    assert chosen_of(trial).form == RARE_TOO


def test_a_lower_floor_that_left_the_log_behind_is_not_taken():
    trial = Trial(risk=(0.2, 0.5, 0.5, 0.5), n=2000)
    trial.regression(trial.action == 0)
    trial.regression(0.5 * (trial.action == 0), RARE_TOO)
    assert chosen_of(trial).form == REGRESSION


@pytest.mark.parametrize(("ahead", "kept"), [(0, "translated"), (40, "smoothed gains")])
def test_networks_of_another_kind_are_kept_only_where_they_lead_the_usual_ones(ahead, kept):
    """Both take the good arm; the other kind does so for some more, or for one by luck."""
    trial, usual = almost_right(ahead)
    trial.rule(usual, acts="likeliest")
    trial.rule(trial.action == 0, acts="likeliest")
    trial.candidates[-1] = replace(trial.candidates[-1], form="smoothed gains")
    assert chosen_of(trial).form == kept


@pytest.mark.parametrize(("ahead", "kept"), [(0, REGRESSION), (40, "translated")])
def test_networks_are_kept_only_where_they_lead_a_regression(ahead, kept):
    """Both take the good arm; the networks do so for some more, or for one by luck."""
    trial, told = almost_right(ahead)
    trial.regression(told).rule(trial.action == 0, acts="likeliest")
    assert chosen_of(trial).form == kept


def test_a_regression_that_lies_behind_a_constant_need_not_be_led():
    trial, told = almost_right(0)
    trial.regression(told).constants()
    trial.rule((trial.action == 0) & ((trial.loss == 0) | (trial.kind == 0)), acts="likeliest")
    chosen = chosen_of(trial)
    assert chosen.form == "translated"
    assert chosen.is_rule


def test_networks_are_held_against_a_regression_in_the_form_in_which_they_would_be_kept():
    """Drawing does not lead it, the likeliest action does, and is what would be taken."""
    trial, told = almost_right(40)
    trial.regression(told)
    trial.rule(0.4 + 0.6 * (trial.action == 0)).rule(trial.action == 0, acts="likeliest")
    assert chosen_of(trial).acts == "likeliest"
    assert chosen_of(trial).form == "translated"


class Told:
    """Candidates whose risks less the clinicians', and their errors, are told; they err apart.

    Args:
        each: Risk, error and candidate.
    """

    def __init__(self, *each):
        clinicians = (0.0, 0.0, replace(blank(np.nan, None), clinicians=True))
        self.value, self.error, own = zip(clinicians, *each, strict=True)
        sound = {"matching_factor": 1.0, "effective_size": 1000.0}
        self.candidates = tuple(replace(one, **sound) for one in own)
        apart, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(50, len(own))))
        self.influence = apart * self.error
        self.totals = self

    def gap(self, one, other):
        influence = self.influence[:, one] - self.influence[:, other]
        error = float(np.linalg.norm(influence))
        value = self.value[one] - self.value[other]
        return SimpleNamespace(value=value, std_error=error, influence=influence)

    def kept(self):
        return self.candidates[choose(self, "held-out")]


def network(translation=0.5, form="translated"):
    return replace(blank(translation, None, "likeliest"), form=form)


LINE = network(np.nan, REGRESSION)


def test_networks_that_lead_a_regression_are_not_hidden_by_a_noisy_set_that_does_not():
    clear, noisy = (-0.100, 0.003, network(0.3)), (-0.112, 0.024, network(0.7))
    assert Told((-0.090, 0.003, LINE), clear, noisy).kept().translation == 0.3
    assert Told((-0.090, 0.003, LINE), noisy).kept().form == REGRESSION


def test_networks_of_another_kind_that_lead_a_regression_are_not_lost_by_usual_ones_that_do_not():
    smooth, usual = (-0.100, 0.002, network(0.9, "smoothed gains")), (-0.098, 0.012, network())
    assert Told((-0.090, 0.002, LINE), smooth, usual).kept().form == "smoothed gains"
    assert Told(smooth, usual).kept().form == "translated"


def test_networks_of_another_kind_give_way_to_a_constant_before_usual_ones_that_are_worse():
    smooth, usual = (-0.100, 0.004, network(0.9, "smoothed gains")), (-0.096, 0.004, network())
    constant = (-0.098, 0.004, blank(np.nan, 0, "likeliest"))
    assert Told(smooth, usual, constant).kept().action == 0
    assert Told(smooth, usual).kept().form == "translated"


def test_networks_of_another_kind_need_not_lead_what_is_no_better_than_the_clinicians():
    trial = Trial(risk=(0.2, 0.8, 0.8, 0.8), n=2_000).noise()
    trial.rule(trial.action == 0, acts="likeliest")
    trial.candidates[-1] = replace(trial.candidates[-1], form="doubly robust")
    assert chosen_of(trial).form == "doubly robust"


def test_the_paper_chooses_the_lowest_snips_of_those_that_draw():
    trial = Trial(risk=(0.1, 0.5, 0.5, 0.5)).constants().noise().noise()
    trial.rule(trial.action == 0, acts="likeliest")
    judged = trial.judged()
    risks = [c.risk if c.is_rule and c.acts == "draws" else np.inf for c in judged.candidates]
    assert choose(judged, "paper") == int(np.argmin(risks))


@pytest.mark.parametrize("few", [0.05, 20.0])
def test_a_candidate_that_left_the_log_behind_is_not_believed(few):
    """Weights far too small or too large: its SNIPS is low, its matching factor tells."""
    trial = Trial(n=2000)
    lucky = few * 0.25 * (trial.loss == 0)
    assert chosen_of(trial.rule(lucky)).clinicians


def test_where_all_losses_are_equal_nothing_is_better():
    trial = Trial().noise().constants()
    trial.loss = np.ones(trial.n)
    assert chosen_of(trial).clinicians


def test_the_luckiest_of_many_alike_is_no_luckier_than_one():
    rng = np.random.default_rng(1)
    one = rng.normal(size=400)
    alone, alike = luckiest([one]), luckiest([one] * 9)
    different = luckiest(list(rng.normal(size=(9, 400))))
    assert alone == pytest.approx(0.84, abs=0.08)  # a standard normal's upper fifth
    assert alike == pytest.approx(alone, abs=0.08)
    assert different == pytest.approx(1.97, abs=0.12)  # the highest of nine
    assert luckiest([np.zeros(5)]) == 0


def test_what_choosing_comes_to_is_right_where_the_chosen_risk_is_too_low():
    """Twenty rules of noise, the lowest SNIPS kept: its risk is lucky, the corrected one is not."""
    naive, corrected = [], []
    for seed in range(40):
        trial = Trial(seed=seed)
        for _ in range(20):
            trial.noise()
        judged = trial.judged()
        best = judged.candidates[choose(judged, "paper")]
        risk, error = risk_of_choosing(judged, "paper", trial.fold)
        naive.append((best.risk - 0.5) / best.std_error)
        corrected.append((risk - 0.5) / error)
    assert np.mean(naive) < -1
    assert abs(np.mean(corrected)) < 0.5  # three standard errors


def test_without_folds_there_is_no_corrected_risk():
    judged = Trial().noise().judged()
    assert risk_of_choosing(judged, "held-out", np.zeros(600, np.int64)) is None


def test_in_a_null_world_no_rule_is_believed():
    """All policies have the same risk. Rules won in three of four such worlds."""
    chosen = []
    for seed in range(5):
        log = Clinic(effect=0.0, decisions_per_stay=3, n_actions=3).log(300, seed=seed)
        learner = TIPS(
            translations=(0.3, 0.6, 0.9), encoder=GRU(8), training=training(4, 3), seed=seed
        ).fit(log)
        chosen.append(next(c for c in learner.path_ if c.chosen))
    assert sum(c.is_rule for c in chosen) <= 1
    assert all(c.corrected_error > 0 for c in chosen)
