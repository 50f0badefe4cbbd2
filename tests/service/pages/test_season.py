"""racedata.service.pages.season: the page of a season."""

from support.answers import client, links_of, words_of


def test_the_page_of_a_season_has_its_races_with_their_winners_and_links(sample):
    html = sample.get("/2023").text
    text = words_of(html)
    assert (
        "racedata Season 2023 ← 2021 Races and their winners Round Race Winner 1 Bahrain Grand Prix"
        in text
    )
    race = (
        "18 United States Grand Prix Sun 22 Oct 2023 , "
        "Circuit of the Americas Max Verstappen Red Bull 19 Mexico"
    )
    assert race in text
    assert "Race results 40 JSON CSV" in text
    links = {*links_of(html)}
    assert {"./", "2021", "2023/18", "/ergast/f1/2023.ics", "/ergast/f1/2023/results.csv"} <= links


def test_a_win_with_a_shared_car_has_both_drivers(sample):
    assert (
        "5 British Grand Prix Sat 20 Jul 1957 , Aintree Tony Brooks Vanwall Stirling Moss Vanwall 6"
        in words_of(sample.get("/1957").text)
    )


def test_the_page_of_a_season_has_both_championships(sample):
    text = words_of(sample.get("/2023").text)
    assert "Drivers after round 22 (all: JSON , CSV ) Pos Driver Points Wins 1 Max Verst" in text
    assert (
        "Constructors after round 22 (all: JSON , CSV ) Pos Constructor Points Wins 1 Red" in text
    )
    assert "Constructors after" not in words_of(sample.get("/1957").text)


def test_every_season_and_race_of_a_full_dump_has_a_page(full_database):
    app = client(full_database)
    for race in app.get("/ergast/f1/races?limit=2000").json["MRData"]["RaceTable"]["Races"]:
        for address in (f"/{race['season']}", f"/{race['season']}/{race['round']}"):
            assert race["raceName"] in words_of(app.get(address, status=200).text)
