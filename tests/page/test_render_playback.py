"""A simulation played back in a browser: the slider, the keyboard, the charts, what is marked."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from kubesched.page.render import render
from kubesched.plugins.registry import in_tree_registry
from kubesched.simulator.playback import PlaybackRecorder
from kubesched.simulator.run import simulate
from kubesched.simulator.scenario_loading import load_scenario
from kubesched.simulator.timeline_report import percent
from tests.page.browsing import opened, violations

pytestmark = pytest.mark.slow

SCENARIO = """
version: 1
name: two nodes
duration: 1h
nodes: [{name: node, count: 2, allocatable: {cpu: 4, memory: 8Gi}}]
priorityClasses: [{name: high, value: 10}]
workloads:
  - {name: low, pods: {at: [1m], burst: 6}, requests: {cpu: 1}}
  - {name: high, pods: {at: [50m], burst: 3}, requests: {cpu: 1}, priorityClassName: high}
  - {name: huge, pods: {at: [55m], burst: 2}, requests: {cpu: 6}}
events:
  - {at: 10m, drain: {names: [node-0], disableEviction: true}}
  - {at: 20m, uncordon: {}}
  - {at: 30m, fail: {names: [node-1], duration: 2m}}
"""
# What is there from second to second, as arithmetic on the scenario: three low pods on each node,
# those of node-0 drained and lost, those of node-1 started over, and then three high ones.
MOMENTS = {
    0: "2 nodes, 0 % of cpu, 0 % of memory requested, no pod waits.",
    120: "2 nodes, 75 % of cpu, 0 % of memory requested, no pod waits.",
    660: "2 nodes (1 cordoned), 37.5 % of cpu, 0 % of memory requested, no pod waits.",
    1260: "2 nodes, 37.5 % of cpu, 0 % of memory requested, no pod waits.",
    1860: "2 nodes (1 unreachable), 37.5 % of cpu, 0 % of memory requested, no pod waits.",
    1980: "2 nodes, 37.5 % of cpu, 0 % of memory requested, no pod waits.",
    3060: "2 nodes, 75 % of cpu, 0 % of memory requested, no pod waits.",
}


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of the scenario."""
    return _written(tmp_path_factory.mktemp("page"), SCENARIO)


def _written(directory: Path, scenario: str) -> Path:
    recorder = PlaybackRecorder()
    report = simulate(load_scenario(scenario), in_tree_registry(), recorder=recorder)
    playback = recorder.playback(report.scenario, report.duration_seconds)
    page = directory / "playback.html"
    page.write_text(render([playback, report], "two nodes"), encoding="utf-8")
    return page


def go_to(page: Page, seconds: float) -> None:
    """Move the slider as a reader does."""
    page.get_by_role("slider", name="Time").fill(str(seconds))


def test_the_slider_moves_the_cluster(file: Path, window: BrowserContext) -> None:
    """The sentence describes the cluster at the slider's time."""
    with opened(window, file) as (page, wrong):
        found = {}
        for seconds in MOMENTS:
            go_to(page, seconds)
            found[seconds] = page.locator(".now").text_content()
        assert MOMENTS == found
        assert [] == wrong


def test_shares_are_those_of_the_text(file: Path, window: BrowserContext) -> None:
    """They have as many digits, and are rounded in the same way."""
    report = simulate(load_scenario(SCENARIO), in_tree_registry())
    with opened(window, file) as (page, wrong):
        table = page.locator("table").filter(has_text="At the end").inner_text()
        for use in report.resources:
            assert use.mean_share is not None
            for share in (use.mean_share, use.peak_share, use.final_share):
                assert percent(share) in table
        assert [] == wrong


def test_the_map_shows_the_moment(file: Path, window: BrowserContext) -> None:
    """The table beside the map has the nodes' states of the slider's time."""
    with opened(window, file) as (page, wrong):
        canvas = page.get_by_role("application")
        go_to(page, 660)
        before = canvas.screenshot()
        canvas.press("Home")
        canvas.press("Enter")
        expect(page.get_by_role("complementary", name="Node node-0")).to_contain_text("cordoned")
        go_to(page, 1860)
        expect(page.get_by_role("complementary", name="Node node-0")).not_to_contain_text(
            "cordoned"
        )
        canvas.press("Escape")
        assert before != canvas.screenshot()
        assert [] == wrong


def test_nodes_that_join_and_go(tmp_path: Path, window: BrowserContext) -> None:
    """The map can be walked while there are none, and while the focused one goes."""
    scenario = """
version: 1
duration: 3m
nodes:
- {name: late, at: 1m, allocatable: {cpu: 4, memory: 8Gi}}
workloads:
- {name: web, pods: {at: [0s]}, requests: {cpu: 8}}
events:
- {at: 2m, remove: {names: [late-0]}}
"""
    with opened(window, _written(tmp_path, scenario)) as (page, wrong):
        said = []
        page.get_by_label("Colour by").select_option(label="pods of priority 0")
        for seconds in (30, 90, 150):
            go_to(page, seconds)
            said.append(page.locator(".now").inner_text())
            page.locator("canvas[role=application]").press("ArrowRight")
            tip = page.locator(".map [aria-live]").inner_text()
            assert ("late" in tip) == (seconds == 90)
            if seconds == 90:
                # By script, as while it plays: the focus stays.
                page.locator(".slider").evaluate(
                    "one => { one.value = 150; one.dispatchEvent(new Event('input')); }"
                )
                assert "0 nodes" in page.locator(".now").inner_text()
        assert [] == wrong
    assert said == [
        "0 nodes, 1 pod waits.",
        "1 node, 0 % of cpu, 0 % of memory requested, 1 pod waits.",
        "0 nodes, 1 pod waits.",
    ]


def test_the_keyboard_is_enough(file: Path, window: BrowserContext) -> None:
    """Home, End and arrows on the slider; n and p for events; space to play."""
    with opened(window, file) as (page, wrong):
        clock = page.locator(".clock")
        slider = page.get_by_role("slider", name="Time")
        slider.press("End")
        expect(clock).to_have_text("1:00:00")
        slider.press("Home")
        expect(clock).to_have_text("0 s")
        times = []
        for _ in range(3):
            slider.press("n")
            times.append(clock.text_content())
        assert ["0:10:00", "0:10:00", "0:20:00"] == times
        slider.press("p")
        expect(clock).to_have_text("0:10:00")
        slider.press(" ")
        expect(page.get_by_role("button", name="Pause")).to_be_visible()
        expect(clock).not_to_have_text("0:10:00")
        slider.press(" ")
        expect(page.get_by_role("button", name="Play")).to_be_visible()
        assert [] == wrong


def test_playing_ends_at_the_end_and_begins_again(file: Path, window: BrowserContext) -> None:
    """The button has the label of its next action."""
    with opened(window, file) as (page, _):
        go_to(page, 3590)
        page.get_by_role("button", name="Play").click()
        expect(page.locator(".clock")).to_have_text("1:00:00")
        page.get_by_role("button", name="Play").click()
        expect(page.locator(".clock")).not_to_have_text("1:00:00")


def test_charts_choose_times_and_zoom(file: Path, window: BrowserContext) -> None:
    """A click is a time, a drag a range, and a button brings all back."""
    with opened(window, file) as (page, wrong):
        plot = page.locator(".u-over").first
        box = plot.bounding_box()
        assert box is not None
        plot.click(position={"x": box["width"] / 2, "y": 20})
        minutes = int((page.locator(".clock").text_content() or "").split(":")[1])
        assert 29 <= minutes <= 30
        page.mouse.move(box["x"] + box["width"] * 0.25, box["y"] + 20)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 20, steps=4)
        page.mouse.up()
        whole = page.get_by_role("button", name="Show all times")
        expect(whole).to_be_visible()
        whole.click()
        expect(whole).to_be_hidden()
        assert [] == wrong


def _events(page: Page) -> list[str]:
    table = page.get_by_role("region", name="What happened to nodes and pods")
    return [
        " | ".join(row.locator("th, td").all_text_contents()[:2])
        for row in table.locator("tbody tr").all()
    ]


def test_nodes_that_fail_while_they_are_cordoned(tmp_path: Path, window: BrowserContext) -> None:
    """They are cordoned once, also one that is cordoned while it is unreachable."""
    scenario = (
        SCENARIO.partition("events:")[0]
        + """
events:
  - {at: 5m, cordon: {names: [node-0]}}
  - {at: 10m, fail: {duration: 10m}}
  - {at: 15m, cordon: {names: [node-1]}}
"""
    )
    with opened(window, _written(tmp_path, scenario)) as (page, _):
        assert "2 nodes failed, 2 nodes were cordoned" in (
            page.locator("h1.lead").text_content() or ""
        )
        assert [
            "0:05:00 | 1 node is cordoned",
            "0:10:40 | 2 nodes are unreachable",
            "0:20:00 | 1 node is cordoned",
            "0:20:00 | 1 node is back and still cordoned",
        ] == _events(page)[:4]


def test_charts_show_more_than_all_that_is_allocatable(
    tmp_path: Path, window: BrowserContext
) -> None:
    """Pods of a removed node count until they are deleted: six cpu of four, and of eight before."""
    scenario = SCENARIO.partition("events:")[0] + "events: [{at: 10m, remove: {names: [node-0]}}]"
    with opened(window, _written(tmp_path, scenario)) as (page, _):
        page.evaluate("""() => {
          window.drawn = [];
          const draw = CanvasRenderingContext2D.prototype.fillText;
          CanvasRenderingContext2D.prototype.fillText = function (text, ...where) {
            window.drawn.push(text);
            draw.call(this, text, ...where);
          };
        }""")
        page.get_by_role("button", name="Dark colours").click()  # it draws the axes again
        page.wait_for_function("() => window.drawn.includes('150 %')")


def test_events_of_a_playback(file: Path, window: BrowserContext) -> None:
    """Drain, failure and lost pods are described, and are links to their time."""
    with opened(window, file) as (page, _):
        headline = "11 pods in 1 h: 1 node failed, 1 node was cordoned, 3 pods were lost."
        assert headline in (page.locator("h1.lead").text_content() or "")
        table = page.get_by_role("region", name="What happened to nodes and pods")
        assert [
            "0:10:00 | 1 node is cordoned",
            "0:10:00 | 3 pods leave drained nodes",
            "0:10:00 | 3 pods are lost: nothing creates them again",
            "0:20:00 | 1 node is ready again",
            "0:30:40 | 1 node is unreachable",
            "0:32:00 | 1 node is ready again",
            "0:32:00 | 3 pods start over",
        ] == _events(page)
        table.get_by_role("button", name="0:30:40").click()
        expect(page.locator(".now")).to_contain_text("1 unreachable")


def test_the_report_is_below_the_playback(file: Path, window: BrowserContext) -> None:
    """Waits, the charts that the playback lacks, and totals; drags zoom all of them."""
    with opened(window, file) as (page, wrong):
        report = page.get_by_role("article", name="timeline report")
        expect(report.locator("h2.lead")).to_contain_text("9 of 11 pods got a node in 1 h.")
        titles = report.locator(".timechart").evaluate_all(
            "found => found.map(one => one.getAttribute('aria-label'))"
        )
        assert [
            "Queue, pods",
            "Fragmentation",
            "Rates, per hour",
            "Disruptions, per hour",
        ] == titles
        assert [] == wrong


def test_pods_that_wait_have_their_reason(file: Path, window: BrowserContext) -> None:
    """That of their last attempt at the slider's time; there is nothing more to ask."""
    with opened(window, file) as (page, _):
        go_to(page, 3500)
        expect(page.locator(".cards")).to_contain_text("2 pods Insufficient cpu")
        expect(page.locator(".cards")).not_to_contain_text("kubesched explain")
        go_to(page, 3060)
        expect(page.locator(".cards")).to_have_count(0)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_accessibility_rules_hold(
    file: Path, window: BrowserContext, scheme: str, width: int
) -> None:
    """Axe finds nothing, and nothing is wider than the window."""
    with opened(window, file, scheme=scheme, width=width) as (page, wrong):
        assert [] == violations(page)
        assert [] == wrong
