"""The studio in a browser: from a CSV file to a verified release without typing YAML, by keyboard, on a phone, in the dark."""

from __future__ import annotations

import csv
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conftest import CommandLine
from tests.jobs import digests
from tests.patience import SECONDS

selenium = pytest.importorskip("selenium", reason="selenium is not installed")
CHROMIUM, DRIVER = (next(filter(None, map(shutil.which, names)), None) for names in (("chromium", "chromium-browser"), ("chromedriver",)))
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not CHROMIUM or not DRIVER, reason="Chromium and its driver are not installed (Debian: chromium, chromium-driver)"),
]
ROWS = 600
Wait = Callable[[str], Any]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Return a table of people as a CSV file."""
    random = np.random.default_rng(3)
    towns, ills = ["Alder", "Birch", "Cedar", "Dahlia"], ["flu", "gout", "cough"]
    path = tmp_path / "people.csv"
    with path.open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["patient_id", "age", "town", "diagnosis"])
        for number in range(ROWS):
            lines.writerow([f"p{number:04}", random.integers(20, 60), towns[min(int(random.exponential(1)), 3)], random.choice(ills)])
    return path


@pytest.fixture
def address(source: Path, direct: CommandLine) -> Iterator[str]:
    """Return the address that the command prints; the studio works in the source's folder."""
    process = subprocess.Popen(
        direct.command("studio", "people.csv", "--no-browser"),
        **direct.options() | {"cwd": source.parent},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    yield process.stdout.readline().strip()
    process.send_signal(signal.SIGTERM)
    assert process.wait(SECONDS) == 128 + signal.SIGTERM
    process.stdout.close()


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Any]:
    """Return a browser without a window."""
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    options = Options()
    options.binary_location = str(CHROMIUM)
    for argument in (
        "headless=new",
        "no-sandbox",
        "disable-dev-shm-usage",
        "window-size=1280,1000",
        f"user-data-dir={tmp_path / 'profile'}",
    ):
        options.add_argument(f"--{argument}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    made = webdriver.Chrome(options=options, service=Service(str(DRIVER), log_output=os.devnull))
    yield made
    # What a page may not do, Chromium says here.
    said = [one["message"] for one in made.get_log("browser")]
    made.quit()
    assert not said


@pytest.fixture
def wait(browser: Any) -> Wait:
    """Return what waits for an element and gives it; of an XPath."""
    from selenium.common.exceptions import StaleElementReferenceException
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait

    def found(path: str) -> Any:
        waiting = WebDriverWait(browser, SECONDS, ignored_exceptions=[StaleElementReferenceException])
        return waiting.until(lambda driver: next((one for one in driver.find_elements(By.XPATH, path) if one.is_displayed()), None))

    return found


def test_from_a_csv_file_to_a_verified_release_without_typing_yaml(
    address: str, browser: Any, wait: Wait, source: Path, direct: CommandLine, tmp_path: Path
) -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import Select

    browser.get(address)
    wait("//h1[.='Columns']")
    assert "token" not in browser.current_url
    job = source.parent / "job.yaml"
    drafted = job.read_text()

    # A role by the keyboard alone; the focus stays where it was.
    button = wait("//form[@aria-label='Role of diagnosis']/button[.='Withheld']")
    button.send_keys(Keys.ENTER)
    wait("//form[@aria-label='Role of diagnosis']/button[.='Withheld' and @aria-pressed='true']")
    assert browser.switch_to.active_element.text.endswith("Withheld")
    wait("//form[@aria-label='Role of diagnosis']/button[.='Sensitive']").click()
    wait("//form[@aria-label='Role of diagnosis']/button[.='Sensitive' and @aria-pressed='true']")
    assert set(drafted.splitlines()) >= {line for line in job.read_text().splitlines() if line.startswith("#")}

    # A value of a list into another group: ticked and moved, and dragged.
    wait("//a[.='Hierarchies']").click()
    wait("//a[.='town']").click()
    wait("//label[contains(@class, 'chip')][contains(., 'Alder')]/input").click()
    Select(wait("//select[@id='to']")).select_by_visible_text("a new group …")
    wait("//input[@id='label']").send_keys("Trees")
    wait("//button[.='Move']").click()
    group = wait("//fieldset[legend[contains(., 'Trees')]]")
    ActionChains(browser).drag_and_drop(wait("//label[contains(@class, 'chip')][contains(., 'Birch')]"), group).perform()
    wait("//fieldset[legend[contains(., 'Trees')]]/label[contains(., 'Birch')]")

    # A promise, and a point of the picture.
    wait("//a[.='Choices']").click()
    field = wait("//input[@id='k']")
    field.send_keys(Keys.CONTROL, "a")
    field.send_keys("8", Keys.ENTER)
    wait("//button[@id='take-1']")
    assert "k: 8" in job.read_text()
    wait("//*[name()='svg']//*[name()='a' and @href='#take-1']/*[name()='circle'][last()]").click()
    wait("//p[contains(., 'The job now names these levels')]")
    assert "node: [" in job.read_text()
    wait("//h2[.='What a release would look like']/following::table//td")

    # The run, and its report.
    wait("//a[.='Run']").click()
    wait("//button[.='Anonymise, verify and publish']").click()
    wait("//p[contains(., 'Published and verified')]")
    wait("//a[.='Its report']").click()
    wait("//h1[contains(., 'Anonymised release')]")
    [release] = [one for one in (source.parent / "releases" / "job").glob("*") if (one / "manifest.json").is_file()]
    direct("verify", release, "--job", job)

    # The command makes the same of the same file, to the byte.
    other = tmp_path / "other"
    shutil.copytree(source.parent, other, ignore=shutil.ignore_patterns("releases", ".skald", "other", "profile"))
    direct("run", other / "job.yaml", "--direct")
    [again] = [one for one in (other / "releases" / "job").glob("*") if (one / "manifest.json").is_file()]
    assert digests(again / "data") == digests(release / "data")


def test_the_page_follows_the_file_and_fits_a_phone_in_the_dark(address: str, browser: Any, wait: Wait, source: Path) -> None:
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True})
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark"}]})
    browser.get(address)
    wait("//h1[.='Columns']")
    for page in ("Columns", "Hierarchies", "Choices", "Run", "Compare"):
        wait(f"//a[.='{page}']").click()
        wait(f"//a[.='{page}' and @aria-current='page']")
        assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
    assert browser.execute_script("return getComputedStyle(document.body).backgroundColor") == "rgb(18, 23, 29)"
    job = source.parent / "job.yaml"
    wait("//a[.='Choices']").click()
    assert wait("//input[@id='limit']").get_attribute("value") == "0.01"
    job.write_text(job.read_text().replace("limit: 0.01", "limit: 0.03"))
    wait("//input[@id='limit' and @value='0.03']")
