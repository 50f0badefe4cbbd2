"""The page for people in a real browser: Debian's Chromium, on a desk and on a phone, by day and by
night.
"""

import os
import re
import shutil
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.expected_conditions import url_to_be
from selenium.webdriver.support.ui import WebDriverWait
from support import ROOT
from support.apis import served
from support.processes import OFF, service


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
def opened(browser, address, now="", zone="UTC"):
    """A page, in a time zone, or in a browser without scripts if there is none. Its clock stands
    still if there is a time.
    """
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": not zone})
    browser.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": zone})
    browser.execute_cdp_cmd("Emulation.setLocaleOverride", {"locale": "en-US"})
    source = f"Date.now = () => new Date('{now}').getTime()" if now else ""
    added = browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": source})
    browser.get(address)
    try:
        yield
    finally:
        browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", added)
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


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


# Each page, and a text in an element of it.
PAGES = {
    "": ("#weekend", "Practice 1"),
    "data": ("#loaded", "1957 to 2023"),
    "docs": ("#results", "Race results"),
    "1957": (".calendar", "British Grand Prix"),
    "2023/18": (".race", "Collision damage"),
    "2023/19": ("table", "Practice 1"),
    "2023": (".calendar", "United States Grand Prix"),
    "2023/9": ("table", "Leclerc"),
    "2021/10": ("table", "Hamilton"),
    "drivers/hamilton": ("#mates ~ table", "George Russell"),
    "constructors/ferrari": ("#seasons ~ table", "Leclerc"),
    "circuits/americas": (".winners", "Verstappen"),
    "seasons": (".champions", "Max Verstappen"),
    "records": (".ranking", "Fernando Alonso"),
    "drivers": (".letters", "L. Hamilton"),
    "constructors": (".letters", "Ferrari"),
    "circuits": (".editions", "Circuit of the Americas"),
    "find?q=a": (".found", "Alonso"),
    "2023/discrepancies": (".counts, main", "disagree"),
    "discrepancies": (".counts, main", "disagree"),
    "changes": ("main", "changed"),
}


def widest(browser):
    return browser.execute_script("return document.documentElement.scrollWidth")


@pytest.mark.parametrize("address", PAGES)
def test_each_page_fits_the_width_of_the_screen_without_broken_words_or_errors(
    browser, site, address
):
    messages(browser)
    selector, text = PAGES[address]
    # opened at the first width, and then made smaller
    for width, smaller in ((390, 320), (1280, 481)):
        emulate(browser, width)
        browser.get(site + address)
        assert text in browser.find_element(By.CSS_SELECTOR, selector).text
        body = browser.find_element(By.TAG_NAME, "body")
        assert float(body.value_of_css_property("font-size").removesuffix("px")) >= 16
        assert widest(browser) <= width
        if width < 600 and address != "docs":
            for summary in browser.find_elements(By.CSS_SELECTOR, CLOSED):
                summary.click()
            assert browser.execute_script(BROKEN) == []
            assert widest(browser) <= width
        emulate(browser, smaller)
        assert widest(browser) <= smaller
        assert width > 600 or address == "docs" or browser.execute_script(BROKEN) == []
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
    browser.get(site + "records#drivers-oldest-winners")
    assert browser.find_element(By.ID, "drivers-oldest-winners").get_attribute("open")
    assert not browser.find_element(By.ID, "drivers-youngest-winners").get_attribute("open")
    with opened(browser, site + "2023/18", zone=""):
        assert shown() == [True] * 5


# What pages show: the address; the time, or the zone of the reader, which is otherwise Kolkata; an
# element, and the text in it, or nothing if it is not shown.
SHOWN = """
2023 | America/New_York | .calendar time[datetime^="2023-10-29T"] | ^Sun, Oct 29, 04:00 PM$
2023 | | .calendar time[datetime^="2023-10-29T"] | ^Mon, Oct 30, 01:30 AM$
2023 | | .note | Times of races to come: Asia/Calcutta.
2023 | no scripts | .calendar time[datetime^="2023-10-29T"] | ^Sun 29 Oct, 20:00$
2023 | no scripts | .note | Times of races to come: UTC.
2023 | no scripts | .lead | Next race: Mexico City Grand Prix, Sun 29 Oct 2023, 20:00 UTC.$
/ | Asia/Tokyo | time[datetime$="28T17:30:00Z"] | ^Sun, Oct 29, 2023, 02:30 AM$
/ | Asia/Tokyo | .lead .zone | ^Asia/Tokyo$
/ | | .subscribe[href^="webcal:"] | ^all sessions
/ | | #calendar | ^http://.*/ergast/f1/current.ics$
docs | | code.url | ^http://.*/ergast/f1$
/ | no scripts | time[datetime$="28T17:30:00Z"] | ^Sat 28 Oct 2023, 17:30$
/ | no scripts | .lead .zone | ^UTC$
/ | no scripts | .subscribe[href^="webcal:"] |
/ | no scripts | #calendar | ^/ergast/f1/current.ics$
/ | no scripts | #main | Results up to the race of the United States .* Sessions, in UTC
/ | no scripts | #next | ^Next:$
/ | no scripts | #over |
/ | no scripts | #upcoming |
/ | 2023-10-29T23:59:59Z | #next | ^Next:$
/ | 2023-10-29T23:59:59Z | #over |
/ | 2023-10-30T00:00:01Z | #next | ^Results pending:$
2023 | 2023-10-28T12:00:00Z | .lead | ^Results up to .* Oct 22, 2023. Next race: Mexico City
2023 | 2023-10-28T12:00:00Z | .calendar .tag.next | ^Next race /  /  / $
/ | 2023-10-28T12:00:00Z | h1 | ^Mexico City Grand Prix$
2023 | 2023-11-01T12:00:00Z | .lead | Next race: São Paulo Grand Prix,
2023 | 2023-11-01T12:00:00Z | .calendar .tag.next | ^Results pending / Next race /  / $
/ | 2023-11-01T12:00:00Z | h1 | ^Mexico City Grand Prix$
/ | 2023-11-01T12:00:00Z | #over | ^Next race: São Paulo .*The result of the last race is not
2023 | 2023-11-20T12:00:00Z | .calendar .tag.next | ^(Results pending / ){3}Next race$
/ | 2023-11-20T12:00:00Z | h1 | ^Abu Dhabi Grand Prix$
/ | 2023-11-20T12:00:00Z | #next | ^Next:$
/ | 2023-11-20T12:00:00Z | #over | ^The results of the last 3 races are .* See all races of 2023.
2023 | 2024-05-01T12:00:00Z | .lead | ^Results up to [^.]*.$
2023 | 2024-05-01T12:00:00Z | .calendar .tag.next | ^Results pending( / Results pending){3}$
/ | 2024-05-01T12:00:00Z | h1 | ^Mexico City Grand Prix$
/ | 2024-05-01T12:00:00Z | #next | ^Results pending:$
/ | 2023-10-24T18:30:00Z | #upcoming | ^Practice 1 in 3 days: Sat, Oct 28, 2023, 12:00 AM$
/ | 2023-10-24T18:30:00Z | #weekend tr.next | ^Practice 1
/ | 2023-10-26T16:30:01Z | #upcoming | ^Practice 1 in 1 day 2 hours:
/ | 2023-10-26T18:30:00Z | #upcoming | ^Practice 1 in 1 day:
/ | 2023-10-27T15:29:00Z | #upcoming | ^Practice 1 in 3 hours 1 minute:
/ | 2023-10-27T15:30:00Z | #upcoming | ^Practice 1 in 3 hours:
/ | 2023-10-27T18:29:01Z | #upcoming | ^Practice 1 in 1 minute:
/ | 2023-10-27T18:30:00Z | #upcoming | ^Practice 1 is on$
/ | 2023-10-27T19:29:59Z | #upcoming | ^Practice 1 is on$
/ | 2023-10-29T19:15:00Z | #upcoming | ^Race in 45 minutes: Mon, Oct 30, 2023, 01:30 AM$
/ | 2023-10-29T21:59:00Z | #weekend tr.next | ^Race
/ | 2023-10-29T22:00:01Z | #weekend tr.next |
/ | 2023-10-29T22:00:01Z | #upcoming |
2023/19 | 2023-10-27T17:30:00Z | #upcoming | ^Practice 1 in 1 hour:
2023/19 | 2023-10-27T17:30:00Z | #main | ^(?!.*No result of the race is loaded)
2023/19 | 2023-10-30T08:00:00Z | #main | No result of the race is loaded
2023/19 | 2023-10-30T08:00:00Z | #upcoming |
/ | 2023-10-24T20:00:00Z | #newest:first-child | Verstappen
/ | 2023-10-27T00:00:01Z | #newest:first-child |
"""


def opening(line):
    """The address of a page, and the time or the zone."""
    return tuple(map(str.strip, line.split("|")[:2]))


@pytest.mark.parametrize(
    ("address", "when", "lines"),
    [(*page, [*lines]) for page, lines in groupby(SHOWN.strip().splitlines(), opening)],
)
def test_a_page_says_what_is_next_by_the_clock_and_in_the_time_zone_of_the_reader(
    browser, site, address, when, lines
):
    is_time = when.startswith("2")
    now, zone = (when, "") if is_time else ("", when)
    zone = "" if zone == "no scripts" else zone or "Asia/Kolkata"
    with opened(browser, site + address.lstrip("/"), now, zone):
        for line in lines:
            *_, selector, pattern = map(str.strip, line.split("|"))
            found = browser.find_elements(By.CSS_SELECTOR, selector)
            text = " / ".join(each.text for each in found).replace("\n", " ")
            assert bool(text) == bool(pattern), (selector, text)
            assert re.search(pattern, text), (selector, text)


@pytest.mark.parametrize(
    ("address", "script", "said"),
    [
        # in the largest unit; a clock that is behind leaves the time
        (
            "data",
            """const [ago] = document.querySelectorAll(".ago")
            const since = new Date(ago.dataset.since).getTime()
            return [-1, 59, 60, 3599, 7200, 86400 * 3].map((seconds) => {
                Date.now = () => since + seconds * 1000
                sayAgo()
                return ago.textContent
            })""",
            "20.., .* / 0 minutes ago / 1 minute ago / 59 minutes ago / 2 hours ago / 3 days ago",
        ),
        # a day without a time ends where it ends last
        (
            "",
            """return ["2023-10-30T11:59:59Z", "2023-10-30T12:00:01Z"].map((now) => {
                Date.now = () => new Date(now).getTime()
                return isOver({dataset: {start: "2023-10-29"}})
            })""",
            "False / True",
        ),
        (
            "",
            """const [, first, ...others] = document.querySelectorAll("#weekend .sessions tr")
            for (const row of others) row.remove()
            first.dataset.start = "2023-10-28"
            return ["2023-10-27T20:00Z", "2023-10-29T11:59Z", "2023-10-29T12:01Z"].map((now) => {
                Date.now = () => new Date(now).getTime()
                saySession()
                return upcoming.hidden ? "" : upcoming.textContent.split(":")[0]
            })""",
            "Practice 1 / Practice 1 / $",
        ),
    ],
    ids=["how long ago", "a race without a time", "a session without a time"],
)
def test_the_script_says_times_in_words(browser, site, address, script, said):
    with opened(browser, site + address, "2023-10-27T20:00:00Z"):
        found = " / ".join(map(str, browser.execute_script(script)))
    assert re.search(f"{said}$", found), found


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


def focused(browser):
    return browser.switch_to.active_element


def test_a_keyboard_skips_to_the_content_follows_links_and_unfolds_the_championship(browser, site):
    emulate(browser, 1280)
    with opened(browser, site, "2023-10-28T12:00:00Z"):
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


def test_the_browser_may_load_the_icon_and_the_manifest(browser, site):
    messages(browser)
    for address in ("manifest.webmanifest", "icon.svg", ""):
        browser.get(site + address)
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


@pytest.mark.skipif(not AXE, reason="AXE does not name the file axe.min.js of axe-core")
def test_a_checker_of_accessibility_finds_nothing(browser, site):
    for address in (*PAGES, "drivers/moss", "constructors/vanwall"):
        for width, scheme in ((390, "light"), (390, "dark"), (1280, "light"), (1280, "dark")):
            emulate(browser, width, scheme)
            browser.get(site + address)
            browser.execute_script(
                "document.querySelectorAll('details').forEach((d) => d.open = true)"
            )
            browser.execute_script(Path(AXE).read_text(encoding="utf-8"))
            found = browser.execute_async_script(
                """axe.run(document, {resultTypes: ["violations"]}).then((result) =>
                    arguments[0](result.violations.map((each) =>
                        [each.id, each.nodes.map((node) => node.html)])))"""
            )
            assert found == [], (address, width, scheme)


@pytest.mark.parametrize("zone", ["UTC", ""], ids=["script", "no script"])
def test_a_driver_is_found_with_the_keyboard_alone_and_without_scripts(browser, site, zone):
    emulate(browser, 390)
    with opened(browser, site + "2023/18", zone=zone):
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
