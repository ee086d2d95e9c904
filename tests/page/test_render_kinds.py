"""The page of each kind of document in a browser, as the commands write it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import BrowserContext

from kubesched.cli.files import write_file
from kubesched.page.render import render
from tests.cli.cluster import run
from tests.page.browsing import opened, violations
from tests.test_reports import printed, replaying, shadow_report

pytestmark = pytest.mark.slow

LEADS: Final = {
    "WhyReport": "Pod shop/big fits no node as it is, and would evict shop/busy on beta",
    "FitReport": "Everything fits in a cluster of 4 nodes. 1 more pod fits.",
    "DrainReport": "Node delta can be drained: no pods are there.",
    "WhatIfReport": "The plan works: ",
    "UpgradeReport": "All of 4 nodes can be upgraded, in 4 steps",
    "CompactReport": "4 of 4 nodes can be removed; 2 pods without a controller go for good.",
    "PodExplanation": "Pod shop/big fits none of 4 nodes.",
    "TopReport": "Pods request ",
    "TimelineReport": "15 pods in 1 min: ",
    "TimelineComparison": " differ most in ",
    "ClusterComparison": "compared with cluster: 1 pod lands elsewhere, 1 no longer fits",
    "ReplayReport": " decisions of default-scheduler would differ now.",
    "ShadowReport": "1 decision of s: all but 1 as kubesched's",
    "SimulationReport": "pending pods get a node, on ",
}
"""What the first sentence of each kind has in it."""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The page of each kind; made before a browser runs, because the thread can simulate then."""
    folder = tmp_path_factory.mktemp("pages")
    found = {kind: folder / f"{kind}.html" for kind in LEADS}
    commands = {**printed(folder), "ReplayReport": replaying(folder)}
    write_file(found["ShadowReport"], render([shadow_report()], "kubesched shadow").encode())
    for kind, file in found.items():
        if kind == "ShadowReport":
            continue
        result = run(*commands[kind], "--html", str(file))
        assert result.exit_code in {0, 1}, result.stderr
    return found


@pytest.mark.parametrize("kind", LEADS)
def test_pages_are_complete(kind: str, pages: dict[str, Path], window: BrowserContext) -> None:
    """The answer is the heading; no errors, requests or violations, also on a phone."""
    with opened(window, pages[kind], width=390) as (page, wrong):
        lead = page.locator("h1").inner_text()
        assert [] == violations(page)
    assert LEADS[kind] in lead
    assert [] == wrong


def test_a_decision_is_drilled_down(pages: dict[str, Path], window: BrowserContext) -> None:
    """The map shows the outcome per node, and a node's filters are a click away."""
    with opened(window, pages["PodExplanation"]) as (page, _):
        assert "outcome" == page.get_by_label("Colour by").input_value()
        page.locator("canvas").focus()
        page.keyboard.press("ArrowRight")
        page.keyboard.press("Enter")
        name = page.locator("aside h3").inner_text()
        details = page.locator("aside").inner_text()
        row = page.locator(".PodExplanation tbody tr", has=page.get_by_text(name, exact=True))
        verdict = row.last.inner_text().split("\t")[-1]
    assert verdict in details
    assert "NodeResourcesFit: cpu: requested 7.5" in verdict


def test_a_table_is_sorted_and_filtered(pages: dict[str, Path], window: BrowserContext) -> None:
    """Headings sort it, and the words in its filter select rows."""
    with opened(window, pages["TopReport"]) as (page, _):
        table = page.locator(".ClusterView table").last
        page.locator("summary", has_text="All nodes").click()
        heading = table.locator("th", has_text="Node").first
        assert "none" == heading.get_attribute("aria-sort")
        heading.get_by_role("button").click()
        assert "ascending" == heading.get_attribute("aria-sort")
        first = table.locator("tbody tr").first.inner_text()
        heading.get_by_role("button").click()
        assert first == table.locator("tbody tr").last.inner_text()


def test_charts_are_zoomed_by_keyboard(pages: dict[str, Path], window: BrowserContext) -> None:
    """All of them together, and the times shown are announced."""
    with opened(window, pages["TimelineComparison"]) as (page, _):
        group = page.get_by_role("group", name="Zoom of the charts")
        assert "all times" == group.get_by_role("status").text_content()
        group.get_by_role("button", name="Zoom in").press("Enter")
        halved = group.get_by_role("status").text_content()
        group.get_by_role("button", name="Later").press("Enter")
        moved = group.get_by_role("status").text_content()
        group.get_by_role("button", name="All times").press("Enter")
        assert "all times" == group.get_by_role("status").text_content()
    assert "15 s to 45 s" == halved
    assert "30 s to 0:01:00" == moved
