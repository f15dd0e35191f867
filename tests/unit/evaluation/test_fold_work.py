"""Work fold by fold."""

import numpy as np

from etips.evaluation.fold_work import IN_TURN


def test_every_fold_is_done_once_in_its_turn_and_writes_its_rows():
    rows, done = IN_TURN.zeros((3, 2), np.float32), []

    def work(number):
        done.append(number)
        rows[number] = number

    IN_TURN.do(work, 3)
    assert done == [0, 1, 2]
    assert rows.dtype == np.float32
    assert rows.tolist() == [[0, 0], [1, 1], [2, 2]]
