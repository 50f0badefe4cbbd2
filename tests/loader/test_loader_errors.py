"""racedata.loader.errors: how messages count and list."""

import pytest

from racedata.loader.errors import SHOWN, counted, listed


@pytest.mark.parametrize(
    ("count", "said"), [(0, "0 races"), (1, "1 race"), (2, "2 races"), (1149, "1,149 races")]
)
def test_a_number_of_things_has_the_right_form(count, said):
    assert counted(count, "race") == said


def test_a_long_list_ends_with_how_many_more_there_are():
    names = [f"2023/{round}" for round in range(1, SHOWN + 1)]
    assert listed(names) == "2023/1, 2023/2, 2023/3, 2023/4, 2023/5"
    assert listed([*names, *["2024/1"] * 1000]).endswith("2023/5 and 1,000 more")
