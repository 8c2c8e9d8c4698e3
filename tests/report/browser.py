"""Headless Chromium, driven by ChromeDriver over its HTTP protocol; https://www.w3.org/TR/webdriver2/."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

DRIVER = shutil.which("chromedriver")
CHROMIUM = shutil.which("chromium")
_ARGUMENTS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage"),
)


class Browser:
    """One window of a given width."""

    def __init__(self, session: str):
        self._session = session

    def open(self, page: Path) -> None:
        self._post("url", {"url": page.as_uri()})

    def run(self, script: str) -> Any:
        """What a script returns."""
        return self._post("execute/sync", {"script": script, "args": []})

    def console(self) -> list[str]:
        """What the page has complained about so far."""
        return [entry["message"] for entry in self._post("se/log", {"type": "browser"})]

    def screenshot(self, path: Path) -> None:
        with urllib.request.urlopen(f"{self._session}/screenshot", timeout=60) as answer:
            path.write_bytes(base64.b64decode(json.load(answer)["value"]))

    def _post(self, what: str, body: dict[str, Any]) -> Any:
        return _post(f"{self._session}/{what}", body)


@contextmanager
def browser(width: int, height: int, profile: Path, *, phone: bool = False) -> Iterator[Browser]:
    """Starts both programs and ends them."""
    options: dict[str, Any] = {
        "binary": CHROMIUM,
        "args": [*_ARGUMENTS, f"--window-size={width},{height}", f"--user-data-dir={profile}"],
    }
    if phone:
        # A desktop's window has a least width; a phone's does not.
        options["mobileEmulation"] = {"deviceMetrics": {"width": width, "height": height, "pixelRatio": 2.0}}
    wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
    with subprocess.Popen([str(DRIVER), "--port=0"], stdout=subprocess.PIPE, text=True) as driver:
        try:
            assert driver.stdout is not None
            port = next(
                line.rsplit(" ", 1)[1].strip(". \n") for line in driver.stdout if "successfully on port" in line
            )
            address = f"http://127.0.0.1:{port}/session"
            session = f"{address}/{_post(address, {'capabilities': {'alwaysMatch': wanted}})['sessionId']}"
            try:
                yield Browser(session)
            finally:
                with urllib.request.urlopen(urllib.request.Request(session, method="DELETE"), timeout=60):
                    pass
        finally:
            driver.terminate()


def _post(address: str, body: dict[str, Any]) -> Any:
    request = urllib.request.Request(address, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)["value"]
