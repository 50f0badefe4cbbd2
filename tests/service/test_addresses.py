"""racedata.service.addresses: what an error says of an address that the grammar does not take."""

import pytest

# The status of an address, and what the message has. test_oracle.py has the status of many others.
SAID = """
404 /grid/fish/results 'fish' is not a valid value for grid; expected a number of at most 18 digits.
404 /2023.xml '.xml' is not an ending; expected .json, .csv, .ics for races or .atom for changes.
404 /2023/18.atom races does not accept the ending .atom, which is only for changes. Try /ergast/f1
404 /results.ics which is only for races. Try /ergast/f1/2023/races.ics.
404 /2023/fish 'fish' is not an endpoint. An address is /ergast/f1, then a season
404 /2023/result 'result' is not an endpoint (did you mean results?). An address is /ergast/f1, then
404 /last/results 'last' must follow a season, as in /current/last.
404 /next 'next' must follow a season, as in /current/next.
404 /20233/results '20233' is not a season.
404 /2023/0/drivers/alonso/results '0' is not a round.
404 /2023/18/5/results '5' is not a filter.
404 /fish/1/status 'fish' is not a filter; expected one of circuits, constructors, drivers, grid,
404 /driver/alonso/races 'driver' is not a filter (did you mean drivers?); expected one of circuits,
400 /2023/races/1 races takes no value. Try /ergast/f1/2023/races.json.
400 /races/1/results races takes no value. Try /ergast/f1/2023/races.json.
400 /2023/18/pitstops/1/sprint sprint does not accept the filter pitstops; expected one of circuits,
400 /drivers/alonso/laps/3 laps needs a season at the start of the address. Try /ergast/f1/2023/18/
400 /driverstandings/1/grid/1/drivers does not accept the filter grid with driverstandings;
400 /driverstandings/1/grid/1/drivers expected only season, round, drivers.
"""


@pytest.mark.parametrize("line", SAID.strip().splitlines())
def test_a_refused_address_says_what_is_wrong_and_what_is_expected(sample, line):
    status, path, said = line.split(" ", 2)
    assert said in sample.get(f"/ergast/f1{path}", status=int(status)).json["detail"]
