"""An experiment from TOML: presets, the short run, and what is refused."""

import json

import pytest
from small_studies import clinic_document, small_experiment, zeros_document

from etips.errors import SettingError
from etips.studies.experiment import read_experiment, shipped, shipped_names


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("preset", ["etips", "paper", "authors"])
@pytest.mark.parametrize("name", ["table1-zeros", "table1-rows", "table2"])
def test_every_shipped_experiment_is_sound(name, preset, quick):
    found = read_experiment(shipped(name), name=name, preset=preset, quick=quick)
    json.dumps(found.to_json(), allow_nan=False)
    assert (found.preset, found.quick, found.folds) == (preset, quick, 2 if quick else 5)
    sizes = {"table1-zeros": 10_000, "table1-rows": 70_000, "table2": 20_944}  # the paper's
    assert quick or found.n == sizes[name]


def test_the_papers_experiments_and_the_demo_are_shipped():
    assert shipped_names() == ["demo", "table1-rows", "table1-zeros", "table2"]
    with pytest.raises(SettingError, match=r"^experiment: must be one of demo, "):
        shipped("table3")


@pytest.mark.parametrize("preset", ["etips", "paper", "authors"])
@pytest.mark.parametrize("task", ["zeros", "rows"])
def test_table_one_has_every_row_of_the_paper_and_ours(task, preset):
    found = read_experiment(shipped(f"table1-{task}"), name=task, preset=preset)
    around = ["full-supervision", "logging"]
    paper = ["direct", "random", "ips", "tips", "eips", "etips"]
    assert list(found.methods) == [*around, *paper, "doubly-robust", "predictive"]


@pytest.mark.parametrize("task", ["zeros", "rows"])
def test_presets_differ_by_method_and_not_by_network(task):
    networks = [
        {
            (method, key): settings.get(key)
            for method, settings in read_experiment(
                shipped(f"table1-{task}"), name=task, preset=preset
            ).methods.items()
            for key in ("encoder", "hidden", "embed", "learning_rate", "batch_size", "dropout")
        }
        for preset in ("etips", "paper", "authors")
    ]
    assert networks[0] == networks[1] == networks[2]


def test_the_presets_read_the_paper_as_they_say():
    paper, authors = (
        read_experiment(shipped("table1-rows"), name="t", preset=p) for p in ("paper", "authors")
    )
    assert (paper.logging, authors.logging) == ("sampled", "argmax")
    assert (paper.turned, authors.turned) == ((), ("direct",))
    assert max(paper.methods["etips"]["translations"]) < 1
    assert max(authors.methods["etips"]["translations"]) == 1.5
    for found in (paper, authors):
        own = found.methods["etips"]
        assert (own["n_folds"], own["clip"], own["init"]) == (1, 0.1, "random")
        assert own["selection"] == "paper"
        assert found.methods["tips"]["clip"] < 1e-3
        assert found.methods["direct"]["interaction"] is False


def test_common_settings_reach_only_the_methods_that_have_them():
    found = small_experiment(clinic_document(), "paper")
    assert found.methods["etips"]["clip"] == 0.2
    assert "clip" not in found.methods["direct"]
    assert found.methods["random"] == {}
    assert found.methods["direct"]["policy.epochs"] == 1


def test_a_methods_own_settings_go_over_common_ones_and_the_short_run_over_both():
    document = clinic_document(
        quick={"settings": {"hidden": 3}, "method": {"etips": {"translations": [0.5]}}}
    )
    whole, short = (small_experiment(document, quick=q) for q in (False, True))
    assert whole.methods["etips"]["hidden"] == 4
    assert short.methods["etips"]["hidden"] == 3
    assert short.methods["etips"]["translations"] == [0.5]
    assert whole.methods["etips"]["translations"] == [0.3, 0.7]


REFUSED = [
    (clinic_document(colour="red"), r"^colour: is not a key"),
    (clinic_document(n="many"), r"^n: must be a whole number"),
    (clinic_document(n=True), r"^n: must be a whole number"),
    (clinic_document(folds=1), r"^folds: must be at least 2"),
    (clinic_document(lag=1), r"^lag: must be 0 with clinic"),
    (clinic_document(world="icu-sepsis", lag=2), r"^lag: must be 0 or 1 with icu-sepsis"),
    (clinic_document(table="table3"), r"^table: must be one of table1, table2"),
    (clinic_document(table="table1"), r"^world: must be digits"),
    (clinic_document(world="mars"), r"^world: must be one of"),
    (clinic_document(methods=["etips", "magic"]), r"^methods: must be one of"),
    (clinic_document(methods=["etips", "etips"]), r"^methods: .* none of them twice"),
    (clinic_document(methods=["logging"]), r"^methods: must be one of"),
    (clinic_document(methods=[]), r"^methods: must name at least one"),
    (clinic_document(settings={"wings": 2}), r"^settings\.wings: is a setting of no method"),
    (clinic_document(settings={"hidden": "wide"}), r"^hidden: must be a whole number"),
    (clinic_document(evaluation={"clip": 2}), r"^evaluation\.clip: must be in"),
    (clinic_document(evaluation={"clap": 0.1}), r"^evaluation\.clap: is not a key"),
    (clinic_document(quick={"speed": 2}), r"^quick\.speed: is not a key"),
    (clinic_document(presets={"etips": {}}), r"^presets\.etips\.lead: is missing"),
    (clinic_document(presets={"paper": {"lead": ""}}), r"^preset: must be one of paper"),
    (
        clinic_document(presets={"etips": {"lead": "", "method": {"tips": {}}}}),
        r"^presets\.etips\.method: must be one of",
    ),
    (
        clinic_document(presets={"etips": {"lead": "", "turned": ["etips"]}}),
        r"^turned: must be one of direct",
    ),
    (
        clinic_document(presets={"etips": {"lead": "", "logging": "guessed"}}),
        r"^logging: must be one of",
    ),
]


@pytest.mark.parametrize(("document", "message"), REFUSED)
def test_a_document_that_is_not_sound_is_refused_by_its_key(document, message):
    with pytest.raises(SettingError, match=message):
        small_experiment(document)


@pytest.mark.parametrize("key", ["title", "table", "world", "n", "lag", "folds", "presets"])
def test_a_missing_key_is_named(key):
    document = zeros_document()
    table = document.pop(key)
    with pytest.raises(SettingError, match=f"^{key}: is missing"):
        read_experiment(document, name="x")
    assert table is not None


def test_a_mistake_in_the_short_run_is_told_to_whoever_runs_the_long_one():
    with pytest.raises(SettingError, match=r"^quick\.folds: must be a whole number"):
        small_experiment(clinic_document(quick={"folds": "few"}))
