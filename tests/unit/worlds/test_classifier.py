"""The logging policy is stopped inside its band, says how, and leaves global state alone."""

from dataclasses import replace

import pytest
import torch

from etips.errors import DataError
from etips.progress import no_progress
from etips.worlds.classifier import StoppedLstm
from etips.worlds.digits import labelled_rows

QUICK = StoppedLstm(target=0.5, share=0.4, hidden=16, learning_rate=1e-2)


@pytest.fixture(scope="module")
def images():
    return labelled_rows(n=500)


@pytest.fixture(scope="module")
def stopped(images):
    return QUICK(images, seed=0, progress=no_progress)


def test_its_accuracy_on_the_rest_is_in_the_band_and_in_the_notes(images, stopped):
    noted = float(stopped.notes["logging_accuracy"])
    assert abs(noted - 0.5) <= 0.01
    assert int(stopped.notes["logging_samples"]) == 200
    assert float(stopped.notes["logging_share"]) == 0.4
    assert 0 < float(stopped.notes["logging_epochs"]) <= QUICK.max_epochs
    right = stopped.probabilities.argmax(axis=1) == images.logged_action
    # The first tenth is never trained on, so its accuracy is near the band (standard error 0.07).
    assert right[:50].mean() == pytest.approx(0.5, abs=0.25)


@pytest.mark.parametrize("seed", [1, 2])
def test_a_band_that_is_jumped_over_is_found_between_two_looks(images, seed):
    rare = replace(QUICK, look_every=100)  # 7 batches an epoch: one look in 14 epochs
    found = rare(images, seed=seed, progress=no_progress)
    assert abs(float(found.notes["logging_accuracy"]) - 0.5) <= 0.01


def test_a_share_too_small_is_doubled_and_the_notes_say_so(images):
    found = replace(QUICK, share=0.02, max_epochs=20)(images, seed=0, progress=no_progress)
    share = float(found.notes["logging_share"])
    assert share > 0.02
    assert int(found.notes["logging_samples"]) == round(share * 500)


def test_training_leaves_global_generators_and_threads_alone(images, generators_left_alone):
    torch.set_num_threads(1)
    with generators_left_alone():
        QUICK(images, seed=0, progress=no_progress)
    assert torch.get_num_threads() == 1


def test_the_same_seed_gives_the_same_policy_whatever_the_global_generator_says(images, stopped):
    torch.manual_seed(99)
    again = QUICK(images, seed=0, progress=no_progress)
    assert (again.probabilities == stopped.probabilities).all()


def test_progress_rises_to_one(images):
    told = []
    QUICK(images, seed=0, progress=lambda what, share: told.append((what, share)))
    shares = [share for _, share in told]
    assert {what for what, _ in told} == {"training the logging policy"}
    assert shares == sorted(shares)
    assert shares[-1] == 1


def test_an_accuracy_out_of_reach_is_refused(images):
    hopeless = replace(QUICK, target=0.999, tolerance=0.0001, max_epochs=1)
    with pytest.raises(DataError, match=r"^logging policy: could not be stopped"):
        hopeless(images, seed=0, progress=no_progress)
