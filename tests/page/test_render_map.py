"""The map in a browser: what it shows, by mouse, keyboard and as a table."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext

from kubesched import Cluster
from kubesched.page.render import render
from tests.cli.cluster import Json, node, pod
from tests.page.browsing import opened, violations

pytestmark = pytest.mark.slow


def test_the_answer_comes_first(window: BrowserContext, map_file: Path) -> None:
    """How full, what is free, what waits; without a request or an error."""
    with opened(window, map_file) as (page, wrong):
        lead = page.locator("h1").inner_text()
    assert "on 120 nodes in 3 zones" in lead
    assert "18 pods are pending for 3 reasons." in lead
    assert [] == wrong


def test_pods_that_fit_are_counted_apart(window: BrowserContext, tmp_path: Path) -> None:
    """They wait for the scheduler, and for no reason."""
    file = tmp_path / "map.html"
    view = Cluster.from_files("examples/demo/cluster.yaml").view()
    file.write_text(render([view], "kubesched top"), encoding="utf-8")
    with opened(window, file) as (page, _):
        assert "8 pods are pending; 6 of them fit now." in page.locator("h1").inner_text()


def test_on_a_phone_a_row_shows_only_what_it_has(window: BrowserContext, tmp_path: Path) -> None:
    """A pod that stays goes to no node, so this heading is left out."""
    file = tmp_path / "drain.html"
    report = Cluster.from_files("examples/drain-and-upgrade/cluster.yaml").drain("a-1")
    file.write_text(render([report], "kubesched drain"), encoding="utf-8")
    with opened(window, file, width=480) as (page, _):
        moved, stays = (
            page.locator("tr", has_text=pod)
            .get_by_role("cell")
            .evaluate_all(
                "cells => cells.filter(one => one.offsetParent).map(one => one.dataset.heading)"
            )
            for pod in ("shop/web-5d-1", "shop/agent-1")
        )
    assert "Goes to" in moved
    assert ["On node", "Outcome"] == stays


def test_long_names_are_wrapped(window: BrowserContext, tmp_path: Path) -> None:
    """On a phone, pages with the longest legal names are no wider than the window."""
    device = f"example.com/{'d' * 62}"
    waits = pod("p" * 253, "9")
    waits["spec"]["containers"][0]["name"] = "c" * 63
    waits["spec"]["containers"][0]["resources"]["requests"][device] = "1"
    alone = node("n" * 253, "4")
    alone["status"]["allocatable"][device] = "1"
    page_of_top, page_of_why = tmp_path / "top.html", tmp_path / "why.html"
    cluster = Cluster.from_objects([alone, waits])
    page_of_top.write_text(render([cluster.view()], "kubesched top"), encoding="utf-8")
    page_of_why.write_text(render(cluster.why_page("p" * 253), "kubesched why"), encoding="utf-8")
    for file in (page_of_top, page_of_why):
        with opened(window, file, width=390) as (page, wrong):
            assert [] == violations(page) + wrong


@pytest.mark.parametrize("objects", [[], [pod("p", "1")]])
def test_a_cluster_without_nodes(
    objects: list[Json], window: BrowserContext, tmp_path: Path
) -> None:
    """It has no map of what pods request, but its pods have their reason."""
    file = tmp_path / "simulation.html"
    report = Cluster.from_objects(objects).simulate()
    file.write_text(render([report], "kubesched simulate"), encoding="utf-8")
    with opened(window, file) as (page, wrong):
        shown = page.locator("main").inner_text()
    assert [] == wrong
    assert bool(objects) == ("no nodes available to schedule pods" in shown)


def test_a_node_is_opened_by_mouse_and_closed(window: BrowserContext, map_file: Path) -> None:
    """Its pods and requests appear beside the map."""
    with opened(window, map_file) as (page, _):
        page.locator("canvas").click(position={"x": 8, "y": 50})
        assert "edge-0114" == page.locator("aside h3").inner_text()
        assert 1 <= page.locator("aside tbody tr").count()
        page.get_by_label("Close").click()
        assert 0 == page.locator("aside").count()


def test_nodes_are_reached_by_keyboard(window: BrowserContext, map_file: Path) -> None:
    """Arrows announce a node, Enter opens it."""
    with opened(window, map_file) as (page, _):
        page.locator("canvas").focus()
        for key in ("ArrowRight", "ArrowRight", "ArrowDown"):
            page.keyboard.press(key)
        spoken = page.locator(".map [aria-live]").inner_text()
        page.keyboard.press("Enter")
        assert spoken.startswith(page.locator("aside h3").inner_text())


def test_a_workload_is_found(window: BrowserContext, map_file: Path) -> None:
    """The number of nodes with it is announced."""
    with opened(window, map_file) as (page, _):
        page.get_by_label("Find").fill("ml/train")
        found = page.get_by_role("status").inner_text()
    assert found.endswith(" nodes")
    assert 0 < int(found.split()[0]) < 30


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_rules_of_accessibility_hold(
    window: BrowserContext, map_file: Path, scheme: str, width: int
) -> None:
    """As axe checks them, with everything opened."""
    with opened(window, map_file, scheme=scheme, width=width) as (page, wrong):
        page.locator("canvas").click(position={"x": 8, "y": 50})
        assert [] == violations(page)
    assert [] == wrong
