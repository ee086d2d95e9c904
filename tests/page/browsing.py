"""A headless Chromium, and pages in it that may not do what a page must not do."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]  # without types
from playwright.sync_api import BrowserContext, Page, sync_playwright

_FLAGS: Final = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)


def chromium() -> str:
    """Return the path of a Chromium; "" if there is none."""
    found = (shutil.which(name) for name in ("chromium", "google-chrome", "chromium-browser"))
    return next(filter(None, found), "")


@contextmanager
def browser() -> Iterator[BrowserContext]:
    """Start a Chromium with one window, whose tabs are the pages; a window takes a second."""
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=chromium(), args=[*_FLAGS])
        window = launched.new_context()
        window.new_page()  # a window closes with its last tab
        yield window
        launched.close()


def new_page(
    window: BrowserContext, *, scheme: str = "light", width: int = 1280, height: int = 900
) -> Page:
    """Open an empty page."""
    page = window.new_page()
    page.set_viewport_size({"width": width, "height": height})
    page.emulate_media(
        color_scheme="dark" if scheme == "dark" else "light", reduced_motion="reduce"
    )
    return page


@contextmanager
def opened(
    window: BrowserContext,
    file: Path,
    *,
    scheme: str = "light",
    width: int = 1280,
    height: int = 900,
) -> Iterator[tuple[Page, list[str]]]:
    """Open a file, and return its page and a list of its errors.

    Wrong are errors, messages on the console, and any request but that of the file.
    """
    page = new_page(window, scheme=scheme, width=width, height=height)
    wrong: list[str] = []
    address = file.resolve().as_uri()
    page.on("console", lambda message: wrong.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: wrong.append(f"error: {error}"))
    page.on(
        "request",
        lambda request: None if request.url == address else wrong.append(f"request: {request.url}"),
    )
    page.goto(address)
    page.wait_for_selector("main article")
    yield page, wrong
    page.close()


def violations(page: Page) -> list[str]:
    """Return the rules of accessibility that a page breaks, and whether it is too wide.

    Axe checks the rules with all details opened.
    """
    too_wide = page.evaluate("document.documentElement.scrollWidth > innerWidth")
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true })")
    found = Axe().run(page).response["violations"]
    listed = [f"{one['id']}: {one['nodes'][0]['html']}" for one in found]
    return [*listed, "wider than the window"] if too_wide else listed
