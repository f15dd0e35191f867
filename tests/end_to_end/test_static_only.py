"""Tables whose features are all static: learned from, saved, loaded, evaluated."""

import numpy as np
import pyarrow as pa
import pytest
from small_worlds import small

import etips
from etips.policies.policy_files import load_policy

ENCODERS = ["gru", "lstm", "transformer", "last"]


def table(n=120, steps=1, seed=0):
    rng = np.random.default_rng(seed)
    age, sex = rng.normal(60, 10, n), rng.choice(["f", "m"], n)
    drug = rng.choice(["aspirin", "none"], n * steps)
    return pa.table(
        {
            "id": np.repeat(np.arange(n) + 1000 * seed, steps),
            "t": np.tile(np.arange(steps), n),
            "age": pa.array(np.repeat(age, steps), mask=np.repeat(rng.random(n) < 0.1, steps)),
            "sex": np.repeat(sex, steps),
            "drug": drug,
            "died": (rng.random(n * steps) < 0.3 + 0.3 * (drug == "none")).astype(int),
        }
    )


@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("steps", [1, 3])
def test_features_that_are_all_static_are_enough(encoder, steps, tmp_path):
    roles = {"action": "drug", "loss": "died", "static": ["age", "sex"]}
    roles |= {"stay": "id", "step": "t"} if steps > 1 else {"drop": ["id", "t"]}
    data = etips.read_table(table(steps=steps), **roles)
    assert data.schema.sequence == ()
    learner = etips.EtIPS(**small(encoder=encoder, translations=(0.5,))).fit(data)
    learner.save(tmp_path / "policy")
    policy = load_policy(tmp_path / "policy")
    later = etips.read_table(table(steps=steps, seed=1), like=policy.schema)
    found = policy.predict_proba(later)
    assert found.shape == (later.n_decisions, 2)
    assert np.allclose(found, learner.predict_proba(later))
    results = etips.evaluate(policy, later)
    assert np.isfinite(results.to_frame().select_dtypes("number").to_numpy()).any()
