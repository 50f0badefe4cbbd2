"""racedata.service.pages: what pages say when the data changes, or lacks something."""

import pytest
from support import EXPECTED
from support.answers import client, words_of
from support.loads import changed

_, *CASES = (EXPECTED / "said.txt").read_text(encoding="utf-8").split("\n\n")


@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
def test_a_page_says_what_is_known(several_sources, case):
    address, *lines = (line for line in case.splitlines() if not line.startswith("#"))
    statements = [line for line in lines if not line.startswith((":", "!"))]
    said, unsaid = ([line[2:] for line in lines if line[0] == sign] for sign in ":!")
    changed(several_sources, *statements)
    page = words_of(client(several_sources).get(address).text)
    assert said and [words for words in said if words not in page] == []
    assert [words for words in unsaid if words in page] == []
