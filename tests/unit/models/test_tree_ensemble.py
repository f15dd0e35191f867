"""Trees of scikit-learn as arrays: they answer alike, and nothing unsound is read."""

import numpy as np
import pytest

from etips.models.tree_ensemble import LEAF, TreeEnsemble, round_down

ensemble = pytest.importorskip("sklearn.ensemble", reason="needs scikit-learn")

COLUMNS = np.array([6, 0, 3, 4])  # of a row of seven; the models see these alone


def rows(n=500, *, gaps=True, seed=0):
    rng = np.random.default_rng(seed)
    table = rng.normal(size=(n, 7)).astype(np.float32)
    if gaps:
        table[rng.random(table.shape) < 0.2] = np.nan
    return table


def targets(table, seed=1):
    rng = np.random.default_rng(seed)
    known = np.nan_to_num(table[:, COLUMNS])
    return np.stack([known[:, 0] > 0, known[:, 1] * known[:, 2], np.abs(known[:, 3])], axis=1) + (
        rng.normal(size=(len(table), 3)) / 3
    )


def kept(make, models, **more):
    return make(models, reads="summary", columns=COLUMNS, **more)


def seen(table):
    return table[:, COLUMNS]


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("kind", [ensemble.RandomForestRegressor, ensemble.ExtraTreesRegressor])
def test_one_forest_of_all_outputs_answers_as_scikit_learn_does(kind, gaps):
    table, new = rows(gaps=gaps), rows(3000, gaps=gaps, seed=2)
    model = kind(20, random_state=0).fit(seen(table), targets(table))
    trees = kept(TreeEnsemble.of_forests, [model])
    assert trees.value.shape[1] == 3
    assert trees.n_members == 1
    np.testing.assert_allclose(trees.outputs(new)[0], model.predict(seen(new)), atol=1e-6)


def test_a_forest_of_each_output_answers_as_scikit_learn_does():
    table, new = rows(), rows(seed=2)
    models = [
        ensemble.RandomForestRegressor(10, max_depth=5, random_state=0).fit(seen(table), own)
        for own in targets(table).T
    ]
    trees = kept(TreeEnsemble.of_forests, models)
    assert trees.value.shape[1] == 1
    wanted = np.stack([model.predict(seen(new)) for model in models], axis=1)
    np.testing.assert_allclose(trees.outputs(new)[0], wanted, atol=1e-6)


def test_a_forest_of_classes_gives_an_action_that_it_never_saw_no_chance():
    table, new = rows(), rows(seed=2)
    action = np.array([0, 2, 3])[targets(table).argmax(axis=1)]
    model = ensemble.RandomForestClassifier(10, max_depth=4, random_state=0).fit(
        seen(table), action
    )
    said = kept(TreeEnsemble.of_forests, [model], n_outputs=5).outputs(new)[0]
    np.testing.assert_allclose(said[:, [0, 2, 3]], model.predict_proba(seen(new)), atol=1e-6)
    assert (said[:, [1, 4]] == 0).all()


def test_boosting_of_each_output_answers_as_scikit_learn_does():
    table, new = rows(), rows(seed=2)
    wanted = targets(table)
    amount = ensemble.HistGradientBoostingRegressor(max_iter=30, random_state=0)
    chance = ensemble.HistGradientBoostingClassifier(max_iter=30, random_state=0)
    amount.fit(seen(table), wanted[:, 1])
    chance.fit(seen(table), wanted[:, 0] > 0.5)
    said = kept(TreeEnsemble.of_boosting, [amount, chance]).outputs(new)[0]
    np.testing.assert_allclose(said[:, 0], amount.predict(seen(new)), atol=1e-5)
    np.testing.assert_allclose(said[:, 1], chance.decision_function(seen(new)), atol=1e-5)


@pytest.mark.parametrize("actions", [[0, 1], [0, 2, 3]])
def test_boosting_of_actions_gives_the_chance_of_each(actions):
    table, new = rows(), rows(seed=2)
    action = np.array(actions)[targets(table)[:, : len(actions)].argmax(axis=1)]
    model = ensemble.HistGradientBoostingClassifier(max_iter=20, random_state=0).fit(
        seen(table), action
    )
    said = kept(TreeEnsemble.of_boosting, [model], n_outputs=4).outputs(new)[0]
    chance = np.exp(said) / np.exp(said).sum(axis=1, keepdims=True)
    wanted = np.zeros((len(new), 4))
    wanted[:, actions] = model.predict_proba(seen(new))
    np.testing.assert_allclose(chance, wanted, atol=1e-6)


def test_splits_on_categories_are_refused():
    table = rows(gaps=False)
    own = seen(table)
    own[:, 0] = own[:, 0] > 0
    model = ensemble.HistGradientBoostingRegressor(max_iter=3, categorical_features=[0])
    with pytest.raises(ValueError, match="categories"):
        kept(TreeEnsemble.of_boosting, [model.fit(own, 3 * own[:, 0])])


def test_a_cut_rounded_down_decides_every_float32_alike():
    cut = np.array([0.1, 0.5, 1 / 3, -0.1, 1e300, -1e300, np.inf])
    near = round_down(cut)
    assert (near <= cut).all()
    with np.errstate(over="ignore"):
        assert (np.nextafter(near[:-1], np.float32(np.inf)) > cut[:-1]).all()


def small():
    table = rows(60)
    model = ensemble.RandomForestRegressor(3, max_depth=3, random_state=0).fit(
        seen(table), targets(table)
    )
    return kept(TreeEnsemble.of_forests, [model])


def read(arrays, **more):
    return TreeEnsemble.from_arrays(
        arrays, **{"reads": "summary", "n_columns": 7, "n_outputs": 3} | more
    )


def test_what_was_written_is_read_back():
    trees, table = small(), rows(seed=3)
    np.testing.assert_array_equal(read(trees.arrays()).outputs(table), trees.outputs(table))


def put(name, place, value):
    def change(arrays):
        arrays[name] = arrays[name].copy()
        arrays[name][place] = value

    return change


HOSTILE = {
    "a loop": put("left", 1, 0),
    "a child that is itself": put("right", 0, 0),
    "a child of the next tree": put("right", 0, 500),
    "a negative child": put("left", 0, -1),
    "a column that is none": put("column", 0, 7),
    "a column below": put("column", 0, -2),
    "a cut that is no number": put("cut", 0, np.nan),
    "a value without end": put("value", (0, 0), np.inf),
    "a base that is no number": put("base", 0, np.nan),
    "an output too many": put("output", 0, 3),
    "an output of one tree": put("output", 0, 1),
    "a tree of no node": put("start", 1, 0),
    "a start elsewhere": put("start", 0, 1),
    "an end elsewhere": put("start", -1, 5),
    "starts that wrap around": put("start", slice(1, 3), [2**63 - 1, -2]),
    "a part more": lambda arrays: arrays.update(more=np.zeros(3)),
    "a part less": lambda arrays: arrays.pop("cut"),
    "another type": lambda arrays: arrays.update(cut=arrays["cut"].astype(float)),
    "another shape": lambda arrays: arrays.update(cut=arrays["cut"][:-1]),
    "values of one output": lambda arrays: arrays.update(value=arrays["value"][:, :1]),
    "values in a row": lambda arrays: arrays.update(value=arrays["value"].ravel()),
    "no start": lambda arrays: arrays.update(start=arrays["start"][:0]),
}


@pytest.mark.parametrize("attack", HOSTILE)
def test_arrays_that_do_not_fit_are_refused(attack):
    arrays = small().arrays()
    assert arrays["column"][1] != LEAF
    HOSTILE[attack](arrays)
    with pytest.raises(ValueError, match="ensemble of trees"):
        read(arrays)


@pytest.mark.parametrize("more", [{"n_columns": 5}, {"n_outputs": 4}, {"reads": "tea leaves"}])
def test_an_ensemble_for_other_data_is_refused(more):
    with pytest.raises(ValueError, match="ensemble of trees"):
        read(small().arrays(), **more)
