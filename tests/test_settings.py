"""racedata.settings: what each setting takes, and what is said of what it does not take."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import ROOT
from support.answers import client

from racedata.settings import (
    START_OF_PAGES,
    LoaderSettings,
    SettingError,
    Settings,
    settings_in,
    variable_of,
)

VARIABLES = {variable_of(each): each.name for each in settings_in(Settings)}


# A container has its own address and file, and nginx.conf knows the base address.
NOT_OF_CONTAINERS = {
    *("HOST", "PORT", "RACEDATA_DATABASE"),
    *("RACEDATA_BASE_PATH", "RACEDATA_SERIES"),
}
OF_CONTAINERS = {
    "WEB_CONCURRENCY": "${WEB_CONCURRENCY:-1}",
    "RACEDATA_TRUSTED_PROXIES": "unix",
}


def test_a_container_has_each_setting_with_its_default_except_for_those_that_are_its_own():
    text = (ROOT / "deploy" / "compose.yaml").read_text(encoding="utf-8")
    serve = re.search("^  serve:\n(?:    .*\n)+", text, re.M)[0]
    assert re.findall(r"^      (\w+): (.*)$", serve, re.M) == [
        (variable, OF_CONTAINERS.get(variable, f"${{{variable}:-{each.metadata['default']}}}"))
        for each in settings_in(Settings)
        if (variable := variable_of(each)) not in NOT_OF_CONTAINERS
    ]


TAKEN = {
    "HOST": ["::1", "localhost"],
    "PORT": [1, 80, 65535],
    "WEB_CONCURRENCY": [12],
    "RACEDATA_DATABASE": ["/srv/race data.db"],
    "RACEDATA_BASE_PATH": ["", "/api/v1", "/driversx", "/x/drivers"],
    "RACEDATA_SERIES": ["f2"],
    "RACEDATA_BASE_URL": ["https://example.org:8443/x/f1"],
    "RACEDATA_FINISH_TIMES": ["gap"],
    "RACEDATA_MAX_LIMIT": [1, 30, 100_000],
    "RACEDATA_DEFAULT_LIMIT": [1, 30, 2000],
    "RACEDATA_LIMIT_STORE": ["redis://:secret@10.0.0.1:6379/2"],
    "RACEDATA_CONTACT": ["", "mailto:ops@example.org", "Races & more, extension 7"],
}
WRONG = {
    "HOST": ["", "a b", "localhost:80", ":"],
    "PORT": ["0", "65536", "٨٠", " 80", "8_0"],
    "WEB_CONCURRENCY": ["0", "two"],
    "RACEDATA_DATABASE": [""],
    "RACEDATA_BASE_PATH": [
        "ergast",
        "/ergast/",
        "/{season}",
        "/2023",
        "/2023/x",
        "/drivers",
        "/Find/x",
    ],
    "RACEDATA_SERIES": ["", "f1/x", "2023", "circuits", "Data"],
    "RACEDATA_BASE_URL": ["example.org", "ftp://example.org", "https://example.org/"],
    "RACEDATA_FINISH_TIMES": ["Total"],
    "RACEDATA_MAX_LIMIT": ["0", "-1", "1e3"],
    "RACEDATA_DEFAULT_LIMIT": ["0", "1e2"],
    "RACEDATA_BURST_LIMIT": ["0/second", "4"],
    "RACEDATA_SUSTAINED_LIMIT": ["5/fortnight"],
    "RACEDATA_LIMIT_STORE": ["memcached://x"],
    "RACEDATA_CONTACT": ["two\nlines", "x" * 201],
    "RACEDATA_TRUSTED_PROXIES": ["nginx", "10.0.0.1/8", "127.0.0.1 10.0.0.1"],
}


def each(values):
    """Every variable with each of its values."""
    return [(variable, value) for variable, all in values.items() for value in all]


def test_no_base_address_hides_a_page(sample):
    routes = {route.replace("{season:year}", "2023") for route in sample.app.routes}
    first = {route.split("/")[1] for route in routes} - {"", "ergast"}
    files = {name for name in first if "." in name}  # nothing is below them
    found = {name for name in first - files if re.fullmatch(START_OF_PAGES, name)}
    assert found == first - files > {"2023", "drivers", "healthz"}


@pytest.mark.parametrize(("variable", "value"), each(TAKEN))
def test_a_setting_takes_a_valid_value(variable, value):
    assert getattr(Settings.read({variable: str(value)}), VARIABLES[variable]) == value


@pytest.mark.parametrize(("variable", "value"), each(WRONG))
def test_a_wrong_value_is_refused_in_one_line_with_the_variable_the_value_and_what_is_expected(
    variable, value
):
    with pytest.raises(SettingError) as refused:
        Settings.read({variable: value})
    said = str(refused.value)
    assert said.startswith(f"{variable}={value!r}: expected ")
    assert "\n" not in said


@pytest.mark.parametrize(
    ("largest", "default", "used"), [(500, 500, 500), (500, 501, 500), (50, 100, 50), (50, 30, 30)]
)
def test_the_default_limit_is_at_most_the_largest_limit(largest, default, used):
    limits = {"RACEDATA_MAX_LIMIT": str(largest), "RACEDATA_DEFAULT_LIMIT": str(default)}
    assert Settings.read(limits).usual_limit == used


def test_a_misspelt_setting_is_refused_with_the_known_names():
    with pytest.raises(
        SettingError, match="RACEDATA_DATABSE='x': no such setting; expected one of RACEDATA_DATAB"
    ) as refused:
        Settings.read({"RACEDATA_DATABSE": "x"})
    assert str(refused.value).count("RACEDATA_DATABASE") == 1  # though both halves have it


def test_settings_of_both_halves_may_be_in_the_same_file():
    both = {"RACEDATA_SOURCES": "tracinginsights f1db", "PORT": "many"}
    assert LoaderSettings.read(both).sources == "tracinginsights f1db"
    assert Settings.read({**both, "PORT": "8001"}).port == 8001
    with pytest.raises(SettingError, match="RACEDATA_SORUCES='f1db': no such setting; "):
        LoaderSettings.read({"RACEDATA_SORUCES": "f1db"})


@pytest.mark.parametrize("token", ["two words", "line\n", "Zeichen-ü", "\x00"])
def test_a_wrong_secret_is_refused_without_showing_it(token):
    with pytest.raises(SettingError) as refused:
        LoaderSettings.read({"JOLPICA_TOKEN": token})
    assert str(refused.value) == "JOLPICA_TOKEN: expected letters, digits and punctuation"


@given(st.sampled_from(sorted(VARIABLES)), st.text())
def test_any_text_is_either_taken_or_refused_in_one_line(variable, value):
    try:
        Settings.read({variable: value})
    except SettingError as refused:
        assert "\n" not in str(refused)


@pytest.mark.parametrize(
    ("contact", "shown"),
    [
        ("", None),
        ("mailto:ops@example.org", '<a href="mailto:ops@example.org">ops@example.org</a>'),
        (
            "https://example.org/?a&b",
            '<a href="https://example.org/?a&amp;b">https://example.org/?a&amp;b</a>',
        ),
        ("<b>Races</b>", "&lt;b&gt;Races&lt;/b&gt;"),
        ("javascript:alert(1)", "javascript:alert(1)"),
    ],
)
def test_the_contact_is_at_the_end_of_each_html_page(sample_database, contact, shown):
    app, headers = client(sample_database, contact=contact), {"Accept": "text/html"}
    for address in ("/", "/2023/18", "/none"):
        answer = app.get(address, headers=headers, expect_errors=True)
        end = answer.text.partition("</main>")[2]
        assert (f"Contact: {shown}" in end) == ("Contact: " in end) == bool(shown), address
        assert "<b>" not in end and 'href="javascript' not in end
