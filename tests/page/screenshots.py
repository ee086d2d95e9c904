"""Screenshots of pages in all sizes and states: `python -m tests.page.screenshots DIRECTORY`.

Clusters with 10, 1,000 and 5,000 nodes, the last with 100,000 pods, and every kind of report; light
and dark, on a desktop and on a phone. Prints for each page the times to the first paint and to the
load event.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from playwright.sync_api import BrowserContext, Page

from kubesched import Cluster
from kubesched.cli.files import write_file
from kubesched.page.render import render
from tests.cli.cluster import run
from tests.page.browsing import browser, opened
from tests.page.clusters import cluster
from tests.test_reports import printed, replaying

# Numbers of nodes and of pods; not all pods fit.
SIZES: Final = ((10, 60), (1_000, 14_000), (5_000, 140_000))
SCREENS: Final = ((1280, 900), (390, 844))
_TIMES: Final = """() => {
  const painted = performance.getEntriesByName("first-contentful-paint")[0];
  return [painted?.startTime ?? -1, performance.getEntriesByType("navigation")[0].loadEventEnd];
}"""


def _written(folder: Path) -> Iterator[Path]:
    """Write all pages, and yield their files."""
    for nodes, pods in SIZES:
        file = folder / f"map-{nodes}.html"
        given = Cluster.from_objects(cluster(nodes, pods))
        running = sum(bool(pod.spec.node_name) for pod in given.pods)
        print(f"{file.name}: {nodes:,} nodes, {running:,} pods on them")  # noqa: T201 - a script
        write_file(file, render([given.view()], "kubesched top").encode())
        yield file
    for kind, words in {**printed(folder), "ReplayReport": replaying(folder)}.items():
        file = folder / f"{kind}.html"
        result = run(*words, "--html", str(file))
        assert result.exit_code in {0, 1}, result.stderr
        yield file


def _states(page: Page, name: str) -> Iterator[str]:
    """Bring a page into its states, one after another, and yield their names."""
    yield ""
    if not name.startswith("map-"):
        return
    page.get_by_label("Colour by").select_option(label="free nvidia.com/gpu")
    yield "-free-gpus"
    page.get_by_label("Colour by").select_option(label="pods of high")
    yield "-priority"
    page.get_by_label("Find").fill("ml/train")
    yield "-found"
    page.locator("canvas").focus()
    for key in ("ArrowRight", "ArrowRight", "Enter"):
        page.keyboard.press(key)
    yield "-node"


def take(window: BrowserContext, files: list[Path], folder: Path) -> None:
    """Take screenshots of pages."""
    for file in files:
        for scheme in ("light", "dark"):
            for width, height in SCREENS:
                with opened(window, file, scheme=scheme, width=width, height=height) as (page, bad):
                    seen, drawn = page.evaluate(_TIMES)
                    where = f"{file.stem}-{scheme}-{width}"
                    for state in _states(page, file.stem):
                        picture = folder / f"{where}{state}.png"
                        page.screenshot(path=picture, full_page=True)
                print(f"{where}: seen after {seen:.0f} ms, drawn after {drawn:.0f} ms", *bad)  # noqa: T201 - a script


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    pages = list(_written(target))
    with browser() as chromium:
        take(chromium, pages, target)
