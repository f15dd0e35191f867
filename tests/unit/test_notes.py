"""Remarks reach whoever collects them, once each and in one line."""

import logging

import pytest

from etips.notes import collecting_notes, note


def test_a_remark_is_collected_once_and_logged(caplog):
    with caplog.at_level(logging.INFO, logger="etips"), collecting_notes() as notes:
        note("3,214 gaps in 5 columns were carried forward")
        note("3,214 gaps in 5 columns were carried forward")
        note("two\nlines")
    assert notes == ["3,214 gaps in 5 columns were carried forward", "two lines"]
    assert caplog.messages[0] == notes[0]


def test_an_inner_collector_keeps_its_own_and_nobody_need_listen():
    note("to nobody")
    with collecting_notes() as outer:
        with collecting_notes() as inner:
            note("inside")
        note("outside")
    assert (inner, outer) == (["inside"], ["outside"])


def test_a_collector_is_gone_after_a_failure():
    with collecting_notes() as outer:
        with pytest.raises(KeyError), collecting_notes():
            raise KeyError
        note("after")
    assert outer == ["after"]
