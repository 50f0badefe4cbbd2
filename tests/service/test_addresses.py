"""racedata.service.addresses: what the grammar reads, and what it says of what it does not take."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from racedata.service.addresses import (
    CSV,
    ENDINGS,
    FILTERS,
    ICS,
    JSON,
    AddressError,
    Grammar,
    RefusedAddress,
    Rules,
    UnknownAddress,
)

GRAMMAR = Grammar(
    "/ergast/f1",
    {
        "races": Rules(frozenset({"circuits", "drivers"}), endings=ENDINGS),
        "results": Rules(
            frozenset(
                {"circuits", "constructors", "drivers", "grid", "fastest", "results", "status"}
            )
        ),
        "laps": Rules(frozenset({"drivers", "laps"}), needs_season=True),
        "drivers": Rules(
            frozenset({"drivers", "grid", "driverstandings"}),
            only_beside={"driverstandings": frozenset({"drivers"})},
        ),
        "seasons": Rules(frozenset({"drivers"})),
        "sprintqualifying": Rules(frozenset({"drivers", "sprintqualifying"})),
        "practice": Rules(frozenset({"drivers", "practice"})),
    },
)


def read(path):
    address = GRAMMAR.parse(path)
    return address.endpoint, address.season, address.round, dict(address.filters)


def test_behind_season_and_round_names_and_values_come_in_pairs_and_the_last_name_is_the_endpoint():
    assert read("/2023/18/results") == ("results", 2023, 18, {})
    assert read("/drivers/alonso/results") == ("results", None, None, {"drivers": "alonso"})
    assert read("/2023/grid/1/drivers/alonso/results") == (
        "results",
        2023,
        None,
        {"grid": 1, "drivers": "alonso"},
    )
    assert read("/2023/laps/3") == ("laps", 2023, None, {"laps": 3})
    assert read("/drivers/alonso") == ("drivers", None, None, {"drivers": "alonso"})
    assert read("/circuits/spa/results/1") == (
        "results",
        None,
        None,
        {"circuits": "spa", "results": "1"},
    )


@pytest.mark.parametrize(
    ("path", "canonical"),
    [
        ("", "races"),
        ("/2023", "2023/races"),
        ("/2023/races/", "2023/races"),
        ("/current/next", "current/next/races"),
        ("/Drivers/Alonso/Results/01.json", "drivers/alonso/results/01"),
        ("/drivers/a/drivers/b/results", "drivers/a/drivers/b/results"),
    ],
)
def test_the_path_is_that_of_the_request_in_lower_case_and_names_its_endpoint(path, canonical):
    assert GRAMMAR.parse(path).path == canonical


@pytest.mark.parametrize(
    ("path", "canonical"),
    [
        ("/2023/9/Sprint/Qualifying.json", "2023/9/sprintqualifying"),
        ("/sprint/shootout/1/", "sprintqualifying/1"),
        ("/current/last/sprintShootout", "current/last/sprintqualifying"),
        ("/drivers/a/sprint-qualifying", "drivers/a/sprintqualifying"),
        ("/2023/Sprint-Shootout/1", "2023/sprintqualifying/1"),
        ("/2023/9/FP1", "2023/9/practice/1"),
        ("/fp3/drivers/fp1/practice.json", "practice/3/drivers/fp1/practice"),
        ("/drivers/fp2", "drivers/fp2"),
        (
            "/sprint-qualifying/2/drivers/sprint/sprintqualifying",
            "sprintqualifying/2/drivers/sprint/sprintqualifying",
        ),
    ],
)
def test_other_spellings_are_the_same_address_but_a_value_is_not_a_name(path, canonical):
    assert GRAMMAR.parse(path) == GRAMMAR.parse(f"/{canonical}")
    assert GRAMMAR.parse(path).path == canonical


@pytest.mark.parametrize(
    ("path", "canonical", "ending"),
    [
        ("/2023/18/results", "2023/18/results", JSON),
        ("/2023/18/Results.CSV", "2023/18/results", CSV),
        ("/2023/fp1.csv", "2023/practice/1", CSV),
        ("/drivers/csv.csv", "drivers/csv", CSV),
        (".ics", "races", ICS),
        ("/current/next.ics", "current/next/races", ICS),
        ("/circuits/monza/races.ics", "circuits/monza/races", ICS),
    ],
)
def test_the_ending_is_not_a_part_of_the_path(path, canonical, ending):
    address = GRAMMAR.parse(path)
    assert (address.path, address.ending) == (canonical, ending)


@pytest.mark.parametrize("path", ["/results", "/2023/18/laps", "/drivers/a", "/grid/1/seasons"])
def test_only_races_have_calendars(path):
    with pytest.raises(
        UnknownAddress,
        match=r"does not accept the ending \.ics, which is only for races\. Try .*/races\.ics",
    ):
        GRAMMAR.parse(f"{path}.ics")


def test_if_a_filter_is_given_twice_the_last_counts_even_if_it_is_the_value_of_the_endpoint():
    assert read("/drivers/a/drivers/b/results")[3] == {"drivers": "b"}
    assert read("/results/2/drivers/a/results/1")[3] == {"results": "1", "drivers": "a"}


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("drivers", "De_Vries-2", "de_vries-2"),
        ("grid", "007", 7),
        ("grid", "9" * 18, 10**18 - 1),
        ("results", "01", "1"),
        ("results", "r", "R"),
        ("results", "0", "0"),
    ],
)
def test_a_value_is_read_by_its_kind(name, text, value):
    assert read(f"/{name}/{text}/results")[3] == {name: value}


UNREADABLE = """
// /2023//results /23 /0957 /20233 /+202 /2023/0 /2023/01 /2023/-1 /2023/1.5
/2023/9999999999999999999 /last
/next/results /18/2023/results /grid/1/2023/races /results/2023/18/results /2023/grid/1 /2023/grid
/fastest/1 /2023/fish
/2023/18/results.xml /2023/18/results.json/ /2023/18/results// /drivers/é/results
/drivers//results
/grid/x/results /grid/-1/results /grid/9999999999999999999/results /grid/٣/results /٢٠٢٣
/2023/18/results/x
.xml /2023.ics/ /.csv /2023/.ics /results.csv.json /races.
/2023/18/results/rr /2023/qualifying /fp1/2 /fp4 /practice/one /sprint/practice
/shootout
"""
KELVIN = "/2023/\u212aarts"  # lower() makes a k of it


@pytest.mark.parametrize(
    "path", [*UNREADABLE.split(), "/drivers/a b/results", "/results.json\n", KELVIN]
)
def test_an_address_that_the_grammar_cannot_read_is_unknown_and_the_message_has_the_grammar(path):
    with pytest.raises(UnknownAddress, match="four digits") as unknown:
        GRAMMAR.parse(path)
    assert str(unknown.value).endswith("Try /ergast/f1/2023/18/results.json.")


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (
            "/grid/fish/results",
            "'fish' is not a valid value for grid; expected a number of at most 18 digits.",
        ),
        ("/2023.xml", "'.xml' is not an ending; expected .json, .csv, or .ics for races."),
        ("/2023/fish", "'fish' is not an endpoint."),
        ("/last/results", "'last' must follow a season, as in /current/last."),
        ("/next", "'next' must follow a season, as in /current/next."),
        ("/2023/18/last", "'last' must follow a season, as in /current/last."),
        ("/2023/result", "'result' is not an endpoint (did you mean results?)."),
        ("/20233/results", "'20233' is not a season."),
        ("/2023/0/drivers/alonso/results", "'0' is not a round."),
        ("/2023/18/5/results", "'5' is not a filter."),
    ],
)
def test_an_unknown_address_is_refused_with_the_word_or_value_that_is_unknown(path, message):
    with pytest.raises(UnknownAddress) as unknown:
        GRAMMAR.parse(path)
    assert str(unknown.value).startswith(f"{message} An address is /ergast/f1, ")


@pytest.mark.parametrize("path", ["/fish/1/races", "/2023/18/fish/x!y/races.json"])
def test_an_unknown_filter_is_refused_with_the_filters_of_the_endpoint(path):
    with pytest.raises(UnknownAddress) as unknown:
        GRAMMAR.parse(path)
    assert str(unknown.value) == (
        "'fish' is not a filter; expected one of circuits, drivers. Try /ergast/f1/2023/races.json."
    )


def test_an_unknown_filter_that_is_like_another_is_refused_with_that_one():
    with pytest.raises(UnknownAddress) as unknown:
        GRAMMAR.parse("/driver/alonso/races")
    said = "'driver' is not a filter (did you mean drivers?); expected one of circuits, drivers. "
    assert str(unknown.value).startswith(said)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/2023/races/1", "races takes no value. Try /ergast/f1/2023/races.json."),
        ("/races/1/results", "races takes no value. Try /ergast/f1/2023/races.json."),
        ("/seasons/2023", "seasons takes no value. Try /ergast/f1/2023/seasons.json."),
        (
            "/grid/1/races",
            "races does not accept the filter grid; expected one of circuits, drivers. "
            "Try /ergast/f1/2023/races.json.",
        ),
        (
            "/2023/18/pitstops/1/laps",
            "laps does not accept the filter pitstops; expected one of drivers, laps. "
            "Try /ergast/f1/2023/18/laps.json.",
        ),
        (
            "/laps",
            "laps needs a season at the start of the address. Try /ergast/f1/2023/18/laps.json.",
        ),
        (
            "/drivers/alonso/laps/3",
            "laps needs a season at the start of the address. Try /ergast/f1/2023/18/laps.json.",
        ),
        (
            "/driverstandings/1/grid/1/drivers",
            "drivers does not accept the filter grid with driverstandings; expected only "
            "season, round, drivers.",
        ),
    ],
)
def test_an_address_that_the_endpoint_does_not_accept_is_refused_with_the_accepted_filters(
    path, message
):
    with pytest.raises(RefusedAddress) as refused:
        GRAMMAR.parse(path)
    assert str(refused.value) == message


def test_an_unreadable_address_is_reported_before_a_filter_that_the_endpoint_does_not_accept():
    for path in ("/races/1/fish/2/results", "/pitstops/1/grid/x/results", "/races/1/grid"):
        with pytest.raises(UnknownAddress):
            GRAMMAR.parse(path)


def test_a_filter_may_stand_next_to_those_that_it_combines_with():
    assert read("/2023/driverstandings/1/drivers/hamilton")[3] == {
        "driverstandings": "1",
        "drivers": "hamilton",
    }
    assert read("/grid/1/drivers")[3] == {"grid": 1}


WORDS = st.sampled_from(
    [
        *FILTERS,
        "fp1",
        "shootout",
        "races",
        "seasons",
        "2023",
        "current",
        "last",
        "1",
        "r",
        "",
        "fish",
        "é",
        "a" * 300,
    ]
)


@given(st.lists(WORDS, max_size=12).map("/".join))
def test_every_path_is_read_or_refused_in_one_line(path):
    try:
        assert GRAMMAR.parse(f"/{path}").endpoint in GRAMMAR.endpoints
    except AddressError as error:
        assert "\n" not in str(error) and len(str(error)) < 500
