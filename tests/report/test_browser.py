"""The page in headless Chromium, at a phone's width and at a desktop's."""

from __future__ import annotations

from pathlib import Path

import pytest

from hvd_deepreduce.cli.main import main
from report.browser import CHROMIUM, DRIVER, browser
from report.runs import write_run

pytestmark = pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="no chromium and chromedriver: apt-get install chromium chromium-driver"
)


@pytest.mark.parametrize(("width", "height", "phone"), [(390, 844, True), (1280, 900, False)], ids=["phone", "desktop"])
def test_opens_without_an_error(width: int, height: int, phone: bool, tmp_path: Path) -> None:
    names = [f"block{n}.convolution.a_rather_long_name.weight" for n in range(12)]
    assert main(["report", str(write_run(tmp_path / "run.jsonl", names, 8))]) == 0
    with browser(width, height, tmp_path / "profile", phone=phone) as window:
        window.open(tmp_path / "run.html")
        assert window.run("return window.innerWidth") == width
        assert window.run("return document.documentElement.scrollWidth") <= width, "the page scrolls sideways"
        assert window.run("return document.querySelectorAll('.chart').length") == 5
        assert window.run("return document.querySelectorAll('.chart path.curve').length") == 9
        assert "NaN" not in window.run("return document.querySelector('.charts').innerHTML")

        # Choosing a tensor draws its curves, and sorting moves rows without changing which tensor is which.
        first = "return document.querySelector('tbody tr th').textContent"
        assert window.run(first) == names[0]
        window.run("document.querySelectorAll('thead button')[1].click()")
        assert window.run(first) == names[11]
        before = window.run("return document.querySelector('.charts').innerHTML")
        window.run("document.querySelector('tbody tr th').click()")
        assert window.run("return document.querySelector('select').selectedOptions[0].text") == names[11]
        assert window.run("return document.querySelector('tr.chosen th').textContent") == names[11]
        assert window.run("return document.querySelector('.charts').innerHTML") != before

        window.run(
            "const box = document.querySelector('svg').getBoundingClientRect();"
            "document.querySelector('svg').dispatchEvent(new PointerEvent('pointermove', {clientX: box.right - 12}))"
        )
        tip = window.run("return document.querySelector('.tip').textContent").splitlines()
        assert tip[0] == "step 80"
        assert len(tip) == 4
        assert window.console() == []


def test_the_test_would_see_an_error(tmp_path: Path) -> None:
    (tmp_path / "wrong.html").write_text("<script>missing()</script>")
    with browser(600, 400, tmp_path / "profile") as window:
        window.open(tmp_path / "wrong.html")
        assert any("missing is not defined" in message for message in window.console())
