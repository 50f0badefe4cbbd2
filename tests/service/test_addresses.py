"""racedata.service.addresses: what the grammar reads, and what it says of what it does not take."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from racedata.service.addresses import (
    ATOM,
    CSV,
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
        "races": Rules(frozenset({"circuits", "drivers"}), endings=(JSON, CSV, ICS)),
        "changes": Rules(frozenset(), endings=(JSON, CSV, ATOM)),
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


@pytest.mark.parametrize(
    ("ending", "only", "paths"),
    [
        ("ics", "races", "/results /2023/18/laps /drivers/a /grid/1/seasons"),
        ("atom", "changes", "/ /2023 /2023/18 /current/last /races /results"),
    ],
)
def test_only_races_have_calendars_and_only_changes_a_feed(ending, only, paths):
    said = (
        rf"does not accept the ending \.{ending}, which is only for {only}\. Try .*{only}\.{ending}"
    )
    for path in paths.split():
        with pytest.raises(UnknownAddress, match=said):
            GRAMMAR.parse(f"{path.rstrip('/')}.{ending}")


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (
            "/grid/fish/results",
            "'fish' is not a valid value for grid; expected a number of at most 18 digits.",
        ),
        (
            "/2023.xml",
            "'.xml' is not an ending; expected .json, .csv, .ics for races or .atom for changes.",
        ),
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


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/fish/1/races", "'fish' is not a filter"),
        ("/2023/18/fish/x!y/races.json", "'fish' is not a filter"),
        ("/driver/alonso/races", "'driver' is not a filter (did you mean drivers?)"),
    ],
)
def test_an_unknown_filter_is_refused_with_those_of_the_endpoint_and_one_that_is_like_it(
    path, message
):
    with pytest.raises(UnknownAddress) as unknown:
        GRAMMAR.parse(path)
    expected = "expected one of circuits, drivers. Try /ergast/f1/2023/races.json."
    assert str(unknown.value) == f"{message}; {expected}"


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


OTHERS = "fp1 shootout races seasons 2023 current last 1 r fish é"
WORDS = st.sampled_from([*FILTERS, *OTHERS.split(), "", "a" * 300])


@given(st.lists(WORDS, max_size=12).map("/".join))
def test_every_path_is_read_or_refused_in_one_line(path):
    try:
        assert GRAMMAR.parse(f"/{path}").endpoint in GRAMMAR.endpoints
    except AddressError as error:
        assert "\n" not in str(error) and len(str(error)) < 500
