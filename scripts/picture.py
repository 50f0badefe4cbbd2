"""Takes two pictures in a real Chromium. `make picture` runs it.

The picture in README.md is the page at `/` of the real service, over the sample or the database
that DATABASE names. The card is what other sites show beside a link to a page.
"""

import base64
import os
import shutil
import sys
import tempfile
from pathlib import Path
from urllib.parse import quote

from selenium import webdriver

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from support.processes import service  # noqa: E402

FILE = ROOT / "docs" / "page.png"
WIDTH, HEIGHT = 960, 530
CARD = ROOT / "racedata" / "service" / "pages" / "templates" / "card.png"
# As icon.svg. The size is the one that Open Graph's readers recommend.
CARD_SVG = """<svg xmlns="http://www.w3.org/2000/svg" width="1200" height="630">
<rect width="1200" height="630" fill="#a3110a"/>
<path fill="#fff" d="M100 195h80v80h-80zM260 195h80v80h-80zM180 275h80v80h-80z"/>
<g fill="#fff" font-family="sans-serif">
<text x="96" y="460" font-size="110" font-weight="700">racedata</text>
<text x="100" y="530" font-size="40">Formula One results, championships, calendars</text>
</g></svg>"""


def opened() -> webdriver.Chrome:
    """A browser in daylight, with a fixed size and time zone, so that pictures are alike."""
    options = webdriver.ChromeOptions()
    for option in ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(option)
    browser = webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))
    light = {"features": [{"name": "prefers-color-scheme", "value": "light"}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", light)
    browser.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": "Europe/London"})
    browser.execute_cdp_cmd("Emulation.setLocaleOverride", {"locale": "en-GB"})
    return browser


def take(browser: webdriver.Chrome, file: Path) -> None:
    shot = browser.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})
    file.write_bytes(base64.b64decode(shot["data"]))
    print(f"{file.relative_to(ROOT)}: {file.stat().st_size // 1000} kB")


def resize(browser: webdriver.Chrome, width: int, height: int) -> None:
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def main() -> None:
    database = Path(os.environ.get("RACEDATA_DATABASE") or ROOT / "data" / "racedata.db")
    with (
        tempfile.TemporaryDirectory() as folder,
        service(database, Path(folder) / "log") as running,
    ):
        browser = opened()
        try:
            resize(browser, 1200, 630)
            browser.get("data:image/svg+xml," + quote(CARD_SVG))
            take(browser, CARD)
            resize(browser, WIDTH, HEIGHT)
            address = "http://{}:{}/".format(*running.address)
            browser.get(address)
            # Two days before the next race, whenever the picture is taken.
            start = browser.execute_script(
                "return document.getElementById('next')?.dataset.start ?? null"
            )
            if start:
                clock = f"Date.now = () => new Date('{start}').getTime() - 2 * 86400000"
                browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": clock})
                browser.get(address)
            take(browser, FILE)
        finally:
            browser.quit()


if __name__ == "__main__":
    main()
