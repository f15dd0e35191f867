"""One document, and the page made from it, for all tests of the report."""

import pytest
from report_documents import Page, document, render


@pytest.fixture(scope="package")
def found():
    return document()


@pytest.fixture(scope="package")
def page(found):
    return Page(render(found))
