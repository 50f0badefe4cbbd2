"""Takes the picture in README.md: the page at `/` of the real service, in a real Chromium.

`make picture` runs it, over the sample or the database that DATABASE names.
"""

import base64
import os
import shutil
import sys
import tempfile
from pathlib import Path

from selenium import webdriver

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from support.processes import service  # noqa: E402

FILE = ROOT / "docs" / "page.png"
WIDTH, HEIGHT = 960, 530


def opened() -> webdriver.Chrome:
    """A browser in daylight, with a fixed size and time zone, so that pictures are alike."""
    options = webdriver.ChromeOptions()
    for option in ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(option)
    browser = webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))
    size = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False}
    light = {"features": [{"name": "prefers-color-scheme", "value": "light"}]}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", light)
    browser.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": "Europe/London"})
    browser.execute_cdp_cmd("Emulation.setLocaleOverride", {"locale": "en-GB"})
    return browser


def main() -> None:
    database = Path(os.environ.get("RACEDATA_DATABASE") or ROOT / "data" / "racedata.db")
    with (
        tempfile.TemporaryDirectory() as folder,
        service(database, Path(folder) / "log") as running,
    ):
        browser = opened()
        try:
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
            shot = browser.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})
            FILE.write_bytes(base64.b64decode(shot["data"]))
        finally:
            browser.quit()
    print(f"{FILE.relative_to(ROOT)}: {FILE.stat().st_size // 1000} kB")


if __name__ == "__main__":
    main()
