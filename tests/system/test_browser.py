"""The page for people in a real browser: Debian's Chromium, on a desk and on a phone, by day and by
night.
"""

import os
import re
import shutil
from contextlib import contextmanager
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.expected_conditions import url_contains, url_to_be
from selenium.webdriver.support.ui import WebDriverWait
from support import ROOT
from support.apis import served
from support.processes import OFF, nginx_with_copy, run_racedata, service


@pytest.fixture(scope="module")
def site(sample_database, tmp_path_factory):
    with service(sample_database, tmp_path_factory.mktemp("page") / "log", **OFF) as running:
        yield "http://{}:{}/".format(*running.address)


@pytest.fixture(scope="module")
def browser():
    options = webdriver.ChromeOptions()
    for option in ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))
    yield driver
    driver.quit()


def emulate(browser, width, scheme="light"):
    metrics = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    features = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", features)


@contextmanager
def scripts(browser, off):
    """Whether scripts are off in the pages that are opened in the block."""
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": off})
    try:
        yield
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


@contextmanager
def clock(browser, now):
    """Stops the clock of the pages that are opened in the block."""
    source = f"Date.now = () => new Date('{now}').getTime()"
    added = browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": source})
    try:
        yield
    finally:
        browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", added)


def messages(browser):
    """What the console has said since the last call, without 404s for `favicon.ico`: Chromium asks
    for this one after a file that names no icon, once and perhaps late.
    """
    found = [entry["message"] for entry in browser.get_log("browser")]
    return [message for message in found if "/favicon.ico - Failed to load" not in message]


def wait_for(browser, condition):
    """Waits for what the browser does after a click or a key: it may take a moment."""
    WebDriverWait(browser, 30).until(condition)


def luminance(browser, selector, colour):
    """Relative luminance of an element's colour, from 0 to 1, as WCAG has it."""
    found = browser.find_element(By.CSS_SELECTOR, selector).value_of_css_property(colour)
    channels = [
        int(part) / 255 for part in found[found.index("(") + 1 :].rstrip(")").split(",")[:3]
    ]
    linear = [
        each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in channels
    ]
    return sum(weight * each for weight, each in zip((0.2126, 0.7152, 0.0722), linear))


@pytest.mark.parametrize(
    ("address", "selector", "text"),
    [
        ("", "#weekend", "Practice 1"),
        ("data", "#loaded", "1957 to 2023"),
        ("docs", "#results", "Race results"),
        ("1957", ".calendar", "British Grand Prix"),
        ("2023/18", ".race", "Collision damage"),
        ("2023/19", "table", "Practice 1"),
        ("2023", ".calendar", "United States Grand Prix"),
        ("2023/9", "table", "Leclerc"),
        ("2021/10", "table", "Hamilton"),
        ("drivers/hamilton", "#mates ~ table", "George Russell"),
        ("constructors/ferrari", "#seasons ~ table", "Leclerc"),
        ("circuits/americas", ".winners", "Verstappen"),
        ("seasons", ".champions", "Max Verstappen"),
        ("records", ".ranking", "Fernando Alonso"),
        ("drivers", ".letters", "L. Hamilton"),
        ("constructors", ".letters", "Ferrari"),
        ("circuits", ".editions", "Circuit of the Americas"),
        ("find?q=a", ".found", "Alonso"),
        ("2023/discrepancies", ".counts, main", "disagree"),
        ("discrepancies", ".counts, main", "disagree"),
        ("changes", "main", "changed"),
    ],
)
def test_each_page_fits_the_width_of_the_screen_without_broken_words_or_errors(
    browser, site, address, selector, text
):
    messages(browser)
    for width in (320, 390, 481, 1280):
        emulate(browser, width)
        browser.get(site + address)
        assert text in browser.find_element(By.CSS_SELECTOR, selector).text
        body = browser.find_element(By.TAG_NAME, "body")
        assert float(body.value_of_css_property("font-size").removesuffix("px")) >= 16
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
        if width < 600 and address != "docs":
            for summary in browser.find_elements(By.CSS_SELECTOR, CLOSED):
                summary.click()
            assert browser.execute_script(BROKEN) == []
            assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    assert messages(browser) == []


CLOSED = "details:not([open]) > summary"
# The words in tables that are on two lines.
BROKEN = """
const broken = []
for (const cell of document.querySelectorAll("th, td")) {
  const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT)
  while (texts.nextNode()) {
    for (const word of texts.currentNode.data.matchAll(/[^\\s-]+/g)) {
      const range = document.createRange()
      range.setStart(texts.currentNode, word.index)
      range.setEnd(texts.currentNode, word.index + word[0].length)
      if (range.getClientRects().length > 1) broken.push(word[0])
    }
  }
}
return broken
"""


@pytest.mark.parametrize(
    ("address", "selectors"),
    [
        ("", "body main,p,a h3 th small #upcoming"),
        ("2023/18", "h1 dt .best .up .down .tag .note"),
        ("2023", ".tag.next tr.next,th"),
        ("docs", "body main,a h3 section,p dt,code"),
    ],
)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_by_day_and_by_night(browser, site, scheme, address, selectors):
    emulate(browser, 1280, scheme)
    browser.get(site + address)
    ground = luminance(browser, "body", "background-color")
    for selector in selectors.split():
        text = luminance(browser, selector.replace(",", " "), "color")
        assert (ground > text) == (scheme == "light")
        contrast = (max(text, ground) + 0.05) / (min(text, ground) + 0.05)
        assert contrast >= 4.5, selector  # WCAG 2.2, AA


def test_long_tables_are_folded_on_a_phone_until_a_link_leads_to_them(browser, site):
    def shown():
        found = browser.find_elements(By.CSS_SELECTOR, ".fold")
        return [bool(fold.get_attribute("open")) for fold in found]

    emulate(browser, 1280)
    browser.get(site + "2023/18")
    assert shown() == [True] * 5
    assert not browser.find_element(By.CSS_SELECTOR, ".fold > summary").is_displayed()
    emulate(browser, 390)
    browser.get("about:blank")
    browser.get(site + "2023/18")
    assert shown() == [False] * 5
    browser.find_element(By.CSS_SELECTOR, '.jump [href="#stops"]').click()
    wait_for(browser, lambda _: shown().count(True) == 1)
    assert "lap" in browser.find_element(By.CSS_SELECTOR, "#stops + .fold table").text
    browser.get("about:blank")
    browser.get(site + "2023/18#fastest")
    assert browser.find_element(By.CSS_SELECTOR, "#fastest + .fold table").is_displayed()
    with scripts(browser, off=True):
        browser.get(site + "2023/18")
        assert shown() == [True] * 5


@pytest.mark.parametrize(
    ("zone", "off", "shown"),
    [
        ("America/New_York", False, "Sun, Oct 29, 04:00 PM"),
        ("Asia/Kolkata", False, "Mon, Oct 30, 01:30 AM"),
        ("Asia/Kolkata", True, "Sun 29 Oct, 20:00"),
    ],
)
def test_the_races_to_come_of_a_season_are_in_the_time_zone_of_the_reader(
    browser, site, zone, off, shown
):
    browser.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": zone})
    browser.execute_cdp_cmd("Emulation.setLocaleOverride", {"locale": "en-US"})
    with scripts(browser, off):
        browser.get(site + "2023")
        found = browser.find_element(By.CSS_SELECTOR, '.calendar time[datetime^="2023-10-29T"]')
        assert found.text == shown
        notes = [each.text for each in browser.find_elements(By.CSS_SELECTOR, ".note")]
    zone = "UTC" if off else "Asia/Calcutta" if "Kolkata" in zone else zone
    assert f"Times of races to come: {zone}." in notes


TOKYO = ["Asia/Tokyo", "Sun, Oct 29, 2023, 02:30 AM", "The results of", "Results pending:"]
MEXICO = ["America/Mexico_City", "Sat, Oct 28, 2023, 11:30 AM", "The", "Results", "webcal"]
WITHOUT_SCRIPTS = ["UTC", "Sat 28 Oct 2023, 17:30", "", "Next:", "http"]


@pytest.mark.parametrize(
    ("zone", "off", "shown"),
    [
        ("Asia/Tokyo", False, [*TOKYO, "webcal"]),
        ("America/Mexico_City", False, MEXICO),
        ("Asia/Tokyo", True, WITHOUT_SCRIPTS),
    ],
)
def test_sessions_are_in_the_time_zone_of_the_reader_and_without_scripts_in_utc(
    browser, site, zone, off, shown
):
    browser.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": zone})
    browser.execute_cdp_cmd("Emulation.setLocaleOverride", {"locale": "en-US"})
    with scripts(browser, off):
        browser.get(site)
        selectors = (".lead .zone", 'time[datetime$="28T17:30:00Z"]', "#over", "#next", "#calendar")
        *found, address = (browser.find_element(By.CSS_SELECTOR, each).text for each in selectors)
        link = browser.find_element(By.CSS_SELECTOR, ".subscribe").get_attribute("href")
    assert [text[: len(start)] for text, start in zip([*found, link], shown, strict=True)] == shown
    assert bool(found[2]) == bool(shown[2])
    assert address == ("/" if off else site) + "ergast/f1/current.ics"


def test_the_page_says_how_long_ago_a_source_was_read_in_the_largest_unit(browser, site):
    browser.get(site + "data")
    said = browser.execute_script(
        """const [ago] = document.querySelectorAll(".ago")
        const since = new Date(ago.dataset.since).getTime()
        const now = Date.now
        const said = [-1, 59, 60, 3599, 7200, 86400 * 3].map((seconds) => {
            Date.now = () => since + seconds * 1000
            sayAgo()
            return ago.textContent
        })
        Date.now = now
        return said"""
    )
    at, *others = said
    assert re.search(r" 20\d\d, ", at)  # a clock that is behind
    assert others == [
        "0 minutes ago",
        "1 minute ago",
        "59 minutes ago",
        "2 hours ago",
        "3 days ago",
    ]


def test_the_interface_is_one_click_from_the_page_and_has_its_whole_address(browser, site):
    browser.get(site)
    browser.find_element(By.LINK_TEXT, "API").click()
    wait_for(browser, url_to_be(site + "docs"))
    assert browser.find_element(By.CSS_SELECTOR, "code.url").text == site + "ergast/f1"


@pytest.mark.parametrize(
    ("now", "shown"),
    [("2023-10-29T23:59:59Z", "Next:"), ("2023-10-30T00:00:01Z", "Results pending:")],
)
def test_the_heading_of_the_next_race_changes_when_it_is_certainly_over(browser, site, now, shown):
    with clock(browser, now):
        browser.get(site)
        assert browser.find_element(By.ID, "next").text == shown
        assert browser.find_element(By.ID, "over").is_displayed() == (shown != "Next:")


def test_a_race_without_a_time_is_over_where_its_day_ends_last(browser, site):
    for now, is_over in (("2023-10-30T11:59:59Z", False), ("2023-10-30T12:00:01Z", True)):
        with clock(browser, now):
            browser.get(site)
            assert (
                browser.execute_script("return isOver({dataset: {start: '2023-10-29'}})") == is_over
            )


@pytest.mark.parametrize(
    ("now", "coming", "tags"),
    [
        ("2023-10-28T12:00:00Z", "Mexico City", ["Next race", "", "", ""]),
        ("2023-11-01T12:00:00Z", "São Paulo", ["Results pending", "Next race", "", ""]),
        ("2023-11-20T12:00:00Z", "Abu Dhabi", [*["Results pending"] * 3, "Next race"]),
        ("2024-05-01T12:00:00Z", "", ["Results pending"] * 4),
    ],
)
def test_pages_name_the_race_that_is_next_by_the_clock_even_if_the_data_is_old(
    browser, site, now, coming, tags
):
    with clock(browser, now):
        browser.get(site + "2023")
        lead = browser.find_element(By.CSS_SELECTOR, ".lead").text
        assert lead.startswith("Results up to the United States Grand Prix, ")
        assert ("Next race:" in lead) == bool(coming) and f"{coming} " in lead
        found = browser.find_elements(By.CSS_SELECTOR, ".calendar .tag.next")
        assert [tag.text for tag in found] == tags
        browser.get(site)
        over = browser.find_element(By.ID, "over").text
        missing = tags.count("Results pending")
        last = (
            "result of the last race is"
            if missing == 1
            else f"results of the last {missing} races are"
        )
        assert (f"The {last} not loaded yet. See all races of 2023." in over) == bool(missing)
        assert bool(over) == bool(missing)
        # three days after a race, the one that comes is in its place
        shown = "Mexico City" if missing in (0, 1, 4) else coming
        assert over.startswith(f"Next race: {coming} Grand Prix, ") == (missing == 1)
        assert browser.find_element(By.TAG_NAME, "h1").text == f"{shown} Grand Prix"
        assert browser.find_element(By.ID, "next").text == (
            "Results pending:" if missing in (1, 4) else "Next:"
        )


def test_without_scripts_pages_name_the_next_race_of_the_data_and_say_up_to_when_it_goes(
    browser, site
):
    with scripts(browser, off=True):
        browser.get(site + "2023")
        lead = browser.find_element(By.CSS_SELECTOR, ".lead").text
        assert lead == (
            "Results up to the United States Grand Prix, Sun 22 Oct 2023. "
            "Next race: Mexico City Grand Prix, Sun 29 Oct 2023, 20:00 UTC."
        )
        browser.get(site)
        main = browser.find_element(By.ID, "main").text
        assert "Results up to the race of the United States Grand Prix, Sun 22 Oct 2023." in main
        assert "Sessions, in UTC" in main and "Sat 28 Oct 2023, 21:00" in main
        assert not browser.find_element(By.ID, "upcoming").is_displayed()
        browser.find_element(By.LINK_TEXT, "Whole table: race").click()
        wait_for(browser, url_to_be(site + "2023/18#race"))


def test_the_script_for_developers_runs_in_a_browser(browser, site):
    (script,) = re.findall(
        "^```js\n(.*?)^```", (ROOT / "docs/clients.md").read_text(), re.DOTALL | re.MULTILINE
    )
    script = script.replace("http://127.0.0.1:8000/", site)
    with served(
        lambda path: (200, {"Content-Type": "text/html"}, b"<title>Another website</title>")
    ) as other:
        browser.get(other.url)
        shown = f"{script}; laps(2023, 18).then((laps) => arguments[0](laps.size), arguments[0])"
        assert browser.execute_async_script(shown) == 56


def test_the_page_says_in_how_long_each_session_begins_in_the_zone_of_the_reader(browser, site):
    browser.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": "Asia/Kolkata"})
    browser.execute_cdp_cmd("Emulation.setLocaleOverride", {"locale": "en-US"})
    practice, race = "Sat, Oct 28, 2023, 12:00 AM", "Mon, Oct 30, 2023, 01:30 AM"
    for now, said, marked in [
        ("2023-10-24T18:30:00Z", f"Practice 1 in 3 days: {practice}", "Practice 1"),
        ("2023-10-26T16:30:01Z", f"Practice 1 in 1 day 2 hours: {practice}", "Practice 1"),
        ("2023-10-26T18:30:00Z", f"Practice 1 in 1 day: {practice}", "Practice 1"),
        ("2023-10-27T15:29:00Z", f"Practice 1 in 3 hours 1 minute: {practice}", "Practice 1"),
        ("2023-10-27T15:30:00Z", f"Practice 1 in 3 hours: {practice}", "Practice 1"),
        ("2023-10-27T18:29:01Z", f"Practice 1 in 1 minute: {practice}", "Practice 1"),
        ("2023-10-27T18:30:00Z", "Practice 1 is on", "Practice 1"),
        ("2023-10-27T19:29:59Z", "Practice 1 is on", "Practice 1"),
        ("2023-10-29T19:15:00Z", f"Race in 45 minutes: {race}", "Race"),
        ("2023-10-29T21:59:00Z", "Race is on", "Race"),
    ]:
        with clock(browser, now):
            browser.get(site)
            assert browser.find_element(By.ID, "upcoming").text == said
            (row,) = browser.find_elements(By.CSS_SELECTOR, "#weekend tr.next")
            assert row.text.startswith(marked)
    with clock(browser, "2023-10-29T22:00:01Z"):
        browser.get(site)
        assert not browser.find_element(By.ID, "upcoming").is_displayed()
        assert browser.find_elements(By.CSS_SELECTOR, "#weekend tr.next") == []


def test_the_page_of_a_race_to_come_says_which_session_is_next(browser, site):
    with clock(browser, "2023-10-27T17:30:00Z"):
        browser.get(site + "2023/19")
        assert browser.find_element(By.ID, "upcoming").text.startswith("Practice 1 in 1 hour: ")
        assert "No result of the race is loaded" not in browser.find_element(By.ID, "main").text
    with clock(browser, "2023-10-30T08:00:00Z"):
        browser.get(site + "2023/19")
        assert not browser.find_element(By.ID, "upcoming").is_displayed()
        assert "No result of the race is loaded" in browser.find_element(By.ID, "main").text


def test_a_session_without_a_time_is_said_by_its_day(browser, site):
    with clock(browser, "2023-10-27T20:00:00Z"):
        browser.get(site)
        said = browser.execute_script(
            """const [, first, ...others] = document.querySelectorAll("#weekend .sessions tr")
            for (const row of others) row.remove()
            first.dataset.start = "2023-10-28"
            const said = []
            for (const now of ["2023-10-27T20:00Z", "2023-10-29T11:59Z", "2023-10-29T12:01Z"]) {
                Date.now = () => new Date(now).getTime()
                saySession()
                said.push(upcoming.hidden ? "" : upcoming.textContent.split(":")[0])
            }
            return said"""
        )
    assert said == ["Practice 1", "Practice 1", ""]


@pytest.mark.parametrize(
    ("now", "is_first"), [("2023-10-24T20:00:00Z", True), ("2023-10-27T00:00:01Z", False)]
)
def test_a_result_comes_before_the_next_weekend_for_some_days(browser, site, now, is_first):
    with clock(browser, now):
        browser.get(site)
        first = browser.find_element(By.CSS_SELECTOR, "#weekend > div:first-child")
        assert (first.get_attribute("id") == "newest") == is_first


def focused(browser):
    return browser.switch_to.active_element


def test_a_keyboard_skips_to_the_content_follows_links_and_unfolds_the_championship(browser, site):
    emulate(browser, 1280)
    with clock(browser, "2023-10-28T12:00:00Z"):
        browser.get(site)
    body = browser.find_element(By.TAG_NAME, "body")
    body.send_keys(Keys.TAB)
    skip = focused(browser)
    assert (skip.text, skip.rect["x"] >= 0) == ("Skip to the content", True)
    skip.send_keys(Keys.ENTER)
    focused(browser).send_keys(Keys.TAB)
    assert focused(browser).text == "Mexico City Grand Prix"
    seen = []
    while focused(browser).tag_name != "summary":
        here = focused(browser)
        assert here.value_of_css_property("outline-style") == "solid", here.text
        seen.append(here.text)
        here.send_keys(Keys.TAB)
        assert len(seen) < 100
    assert {"all sessions", "Max Verstappen", "Red Bull"} <= {*seen}
    focused(browser).send_keys(Keys.ENTER)
    assert browser.find_element(By.XPATH, "//details[1]//tr[last()]").is_displayed()
    browser.get(site + "2023/18")
    jump = browser.find_element(By.LINK_TEXT, "Pit stops")
    jump.send_keys(Keys.ENTER)
    wait_for(browser, url_to_be(site + "2023/18#stops"))
    stops = browser.find_element(By.ID, "stops")
    top = "return arguments[0].getBoundingClientRect().top"
    wait_for(browser, lambda _: browser.execute_script(top, stops) < 800)


def test_on_a_phone_a_link_to_a_list_of_records_opens_it(browser, site):
    emulate(browser, 390)

    def opened():
        lists = browser.find_elements(By.CSS_SELECTOR, "#drivers ~ .tiles details[open]")
        return [each.get_attribute("id") for each in lists]

    browser.get(site + "records")
    assert opened()[0] == "drivers-most-wins" and "drivers-oldest-winners" not in opened()
    browser.get("about:blank")
    browser.get(site + "records#drivers-oldest-winners")
    assert "drivers-oldest-winners" in opened() and "drivers-youngest-winners" not in opened()


@pytest.mark.parametrize("address", ["", "icon.svg", "manifest.webmanifest"])
def test_the_browser_may_load_the_icon_and_the_manifest(browser, site, address):
    messages(browser)
    browser.get(site + address)
    if not address:
        manifest = browser.execute_cdp_cmd("Page.getAppManifest", {})
        assert manifest["errors"] == []
        assert '"start_url": "./"' in manifest["data"]
    assert messages(browser) == []


def test_paper_has_only_the_content_but_all_columns(browser, site):
    emulate(browser, 718)  # A4, without margins
    browser.get(site)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        hidden = browser.find_elements(By.CSS_SELECTOR, "header, nav, .screen")
        assert len(hidden) >= 3
        assert not any(each.is_displayed() for each in hidden)
        assert browser.find_element(By.ID, "newest").is_displayed()
        browser.get(site + "drivers/hamilton")
        assert browser.find_element(By.CSS_SELECTOR, ".totals th:last-child").is_displayed()
        assert not browser.find_element(By.CSS_SELECTOR, ".narrow").is_displayed()
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


AXE = os.environ.get("AXE", "")  # the file axe.min.js of the npm package axe-core
CHECKED = [
    *("", "data", "docs", "1957", "2023", "2023/18", "2023/19"),
    *("drivers/alonso", "drivers/moss", "constructors/vanwall", "circuits/americas", "find?q=gr"),
    *("seasons", "records", "drivers", "circuits", "discrepancies", "changes"),
]


@pytest.mark.skipif(not AXE, reason="AXE does not name the file axe.min.js of axe-core")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("address", CHECKED)
def test_a_checker_of_accessibility_finds_nothing(browser, site, address, scheme):
    for width in (390, 1280):
        emulate(browser, width, scheme)
        browser.get(site + address)
        browser.execute_script("document.querySelectorAll('details').forEach((d) => d.open = true)")
        browser.execute_script(Path(AXE).read_text(encoding="utf-8"))
        found = browser.execute_async_script(
            """axe.run(document, {resultTypes: ["violations"]}).then((result) =>
                arguments[0](result.violations.map((each) =>
                    [each.id, each.nodes.map((node) => node.html)])))"""
        )
        assert found == [], width


@pytest.mark.parametrize("off", [False, True], ids=["script", "no script"])
def test_a_driver_is_found_with_the_keyboard_alone_and_without_scripts(browser, site, off):
    emulate(browser, 390)
    with scripts(browser, off):
        browser.get(site + "2023/18")
        # the link that skips the navigation, its nine links, and then the field
        for _ in range(11):
            ActionChains(browser).send_keys(Keys.TAB).perform()
        browser.switch_to.active_element.send_keys("pere", Keys.ENTER)
        wait_for(browser, url_to_be(site + "find?q=pere"))
        field = browser.find_element(By.NAME, "q")
        assert field.get_attribute("value") == "pere"
        assert browser.find_element(By.CSS_SELECTOR, ".found a").text == "Sergio Pérez"
        for _ in range(13):  # also the button
            ActionChains(browser).send_keys(Keys.TAB).perform()
        browser.switch_to.active_element.send_keys(Keys.ENTER)
        wait_for(browser, url_to_be(site + "drivers/perez"))
        assert browser.find_element(By.TAG_NAME, "h1").text == "Sergio Pérez"


def test_the_field_of_a_static_copy_leads_to_all_names(browser, sample_database, tmp_path):
    copy = tmp_path / "copy"
    assert run_racedata("export", "site", copy, "--database", sample_database).returncode == 0
    emulate(browser, 390)
    with nginx_with_copy(tmp_path, copy) as (host, port):
        browser.get(f"http://{host}:{port}/")
        browser.find_element(By.NAME, "q").send_keys("alonso", Keys.ENTER)
        wait_for(browser, url_contains("/find?q=alonso"))
        assert "cannot search" in browser.find_element(By.TAG_NAME, "main").text
        browser.find_element(By.CSS_SELECTOR, "main").find_element(By.LINK_TEXT, "drivers").click()
        wait_for(browser, url_contains("/drivers"))
        browser.find_element(By.LINK_TEXT, "F. Alonso").click()
        wait_for(browser, url_contains("/alonso"))
        assert browser.find_element(By.TAG_NAME, "h1").text == "Fernando Alonso"


def test_the_outline_of_a_circuit_and_the_colour_of_a_team_are_drawn(browser, site):
    emulate(browser, 1280)
    messages(browser)
    browser.get(site + "circuits/americas")
    outline = browser.find_element(By.CSS_SELECTOR, ".newest path").rect
    assert outline["width"] > 100 < outline["height"]
    mark = browser.find_element(By.CSS_SELECTOR, ".winners .mark rect")
    assert mark.value_of_css_property("fill").startswith("rgb(")
    assert mark.rect["width"] == 4
    assert messages(browser) == []
