"""One hospital for all tests of exhibits."""

import pytest
from hospital_stays import hospital, leaning, logged, make_exhibits


@pytest.fixture(scope="module")
def made():
    data = hospital()
    return data, logged(data), leaning(data)


@pytest.fixture(scope="module")
def exhibits(made):
    data, log, table = made
    return make_exhibits(data, log, {"p": table}, headline="p", settings={"seed": 3})
