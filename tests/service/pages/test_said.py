"""racedata.service.pages: what pages say when the data changes, or lacks something."""

import pytest
from support import EXPECTED
from support.answers import client, words_of
from support.loads import changed

_, *CASES = (EXPECTED / "said.txt").read_text(encoding="utf-8").rstrip().split("\n\n")
SIGNS = (":", "<", "!", "!<")


@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
def test_a_page_says_what_is_known(several_sources, case):
    address, *lines = (line for line in case.splitlines() if not line.startswith("#"))
    signed = [line.partition(" ") for line in lines if line.partition(" ")[0] in SIGNS]
    changed(several_sources, *(line for line in lines if line.partition(" ")[0] not in SIGNS))
    html = client(several_sources).get(address).text
    words, wrong = words_of(html), []
    for sign, _, text in signed:
        if (text in (html if "<" in sign else words)) == ("!" in sign):
            wrong.append(f"{sign} {text}")
    assert signed and wrong == []
