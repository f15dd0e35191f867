from served_runs import desk, fitted

from etips.runs.folder import RunFolder
from etips.serve.model_card import RunRecord, make_card, mark_policy, read_record


def test_a_card_holds_no_number_without_its_verdict_h2():
    own = desk()
    card = make_card(own.advisor, own.form, RunRecord("run", {"seed": 3}, None, None))
    assert (card.estimates, card.method, card.settings) == ([], None, {"seed": 3})
    assert {"verdict", "finding"} <= set(
        type(card).model_fields["estimates"].annotation.__args__[0].model_fields
    )


def test_the_mark_of_a_policy_changes_with_its_weights():
    assert mark_policy(fitted()) == mark_policy(fitted())
    assert mark_policy(fitted()) != mark_policy(fitted(1))


def test_a_folder_without_a_record_has_nothing_to_tell(tmp_path):
    record = read_record(RunFolder(tmp_path), None)
    assert (record.told, record.data, record.results) == ({}, None, None)
