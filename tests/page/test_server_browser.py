"""The live page in a browser: it follows a cluster, answers about pods, and says when it cannot."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from kubesched.page.server import PageServer
from kubesched.testing import SandboxCluster
from tests.page.browsing import new_page, violations
from tests.page.test_shown import shown_live
from tests.testing.test_sandbox_cluster import pod

pytestmark = pytest.mark.slow


@contextmanager
def serving(kubeconfig: Path) -> Iterator[str]:
    """Serve the page of a cluster in a thread; yields its address with the token."""
    url: Future[str] = Future()
    loop = asyncio.new_event_loop()
    ended = asyncio.Event()

    async def main() -> None:
        async with shown_live(kubeconfig) as shown:
            server = PageServer(shown)
            async with server.listening():
                url.set_result(server.url)
                await ended.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(main(),))
    thread.start()
    try:
        yield url.result(10)
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join()
        loop.close()


@contextmanager
def live_page(window: BrowserContext, url: str) -> Iterator[tuple[Page, list[str]]]:
    """Open an address; yields the page, and its errors and requests to others."""
    page = new_page(window)
    wrong: list[str] = []
    origin = url.partition("#")[0]
    page.on("pageerror", lambda error: wrong.append(f"error: {error}"))
    page.on(
        "request",
        lambda request: (
            None if request.url.startswith(origin) else wrong.append(f"request: {request.url}")
        ),
    )
    page.goto(url)
    yield page, wrong
    page.close()


def _asking(cpu: str) -> list[dict[str, object]]:
    return [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}]


def test_the_page_follows_the_cluster_and_answers(window: BrowserContext) -> None:
    """A bound pod fills its node, a pending one has its cause, and its question an answer."""
    with (
        SandboxCluster(nodes=1) as cluster,
        serving(cluster.kubeconfig) as url,
        live_page(window, url) as (page, wrong),
    ):
        lead = page.locator(".lead").first
        expect(lead).to_contain_text("Pods request 0 % of cpu")
        assert "token" not in page.url
        cluster.create(pod("web", containers=_asking("2")))
        expect(lead).to_contain_text("Pods request 25 % of cpu")
        cluster.create(pod("huge", containers=_asking("64")))
        expect(page.locator(".cards")).to_contain_text("Insufficient cpu")
        page.get_by_label("Pod", exact=True).fill("default/huge")
        page.get_by_role("button", name="Why is it pending?").click()
        answer = page.get_by_role("region", name="Ask about a pod")
        expect(answer.locator(".lead")).to_contain_text("default/huge")
        page.get_by_role("button", name="Explain every node").click()
        expect(answer).to_contain_text("node-0")
        page.get_by_label("Pod", exact=True).fill("default/nobody")
        page.get_by_role("button", name="Why is it pending?").click()
        expect(answer.locator(".note")).to_contain_text("nobody")
        assert [] == violations(page)
        # A reload of the tab keeps the token.
        page.reload()
        expect(lead).to_contain_text("Pods request 25 % of cpu")
        assert [] == wrong


def test_page_without_token(window: BrowserContext) -> None:
    """It shows only what to do."""
    with (
        SandboxCluster(nodes=1, scheduler=False, controllers=False) as cluster,
        serving(cluster.kubeconfig) as url,
        live_page(window, url.partition("#")[0]) as (page, _),
    ):
        expect(page.get_by_role("status")).to_contain_text("The token is missing or wrong")
        assert "" == page.locator("main").text_content()


def test_server_that_has_ended(window: BrowserContext) -> None:
    """The page says so, and keeps its content."""
    with SandboxCluster(nodes=1, scheduler=False, controllers=False) as cluster:
        context = serving(cluster.kubeconfig)
        url = context.__enter__()
        with live_page(window, url) as (page, _):
            expect(page.get_by_role("status").first).to_contain_text("Unchanged since")
            context.__exit__(None, None, None)
            expect(page.get_by_role("status").first).to_contain_text(
                "perhaps kubesched ui has ended. Below is what was there at"
            )
            expect(page.locator(".lead")).to_contain_text("on 1 node")
