"""Renders documents as one HTML page: libraries, our modules, styles and the documents as JSON.

The browser draws each document by its kind; nothing is drawn in Python.

Invariants: the same documents give the same bytes; only code with a known digest runs in the page;
            the page requests nothing, unless it is live.
"""

from __future__ import annotations

import hashlib
import json
import re
from base64 import b64encode
from collections.abc import Iterable, Sequence
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any, Final, NamedTuple

import msgspec

from kubesched.explain.document import Document

_ROOM: Final = files("kubesched.page")
_LIBRARIES: Final = ("preact.js", "preact-hooks.js", "htm.js", "uplot.js")
_IMPORT: Final = re.compile(r'^import [^;]*? from "\./(\w+)\.js";\n', re.MULTILINE)
_EXPORT: Final = re.compile(r"^export ", re.MULTILINE)
_SOURCE_MAP: Final = re.compile(r"^//# sourceMappingURL=.*\n?", re.MULTILINE)


class _Program(NamedTuple):
    """What every page has: the text of its styles and scripts, in order."""

    styles: tuple[str, ...]
    libraries: tuple[str, ...]
    modules: str


def render(documents: Iterable[Document], title: str, *, live: bool = False) -> str:
    """Return a page with documents in this order; `title` is that of the window.

    A live page may make requests to the server that it comes from.
    """
    program = _program()
    policy = content_security_policy(live=live)
    data = msgspec.json.encode([document.to_dict() for document in documents]).decode()
    # Only these characters can end a script.
    data = data.replace("<", "\\u003c")
    parts = [
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        f"<title>{escape(title)}</title>",
        *(f"<style>{text}</style>" for text in program.styles),
        f'</head>\n<body{" data-live" if live else ""}>\n<div id="page"></div>',
        "<noscript>This page draws its data with scripts, which are switched off.</noscript>",
        f'<script type="application/json" id="documents">{data}</script>',
        *(f"<script>{text}</script>" for text in program.libraries),
        f'<script type="module">{program.modules}</script>',
        "</body>\n</html>\n",
    ]
    return "\n".join(parts)


@cache
def content_security_policy(*, live: bool) -> str:
    """Return the policy of a page: its own scripts and styles, and for a live one its server."""
    program = _program()
    scripts = " ".join(map(_digest, (*program.libraries, program.modules)))
    styles = " ".join(map(_digest, program.styles))
    server = "'self'" if live else "'none'"
    return (
        f"default-src 'none'; script-src {scripts}; style-src {styles}; connect-src {server}; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@cache
def _program() -> _Program:
    packages = json.loads(_text("vendor", "vendored.json"))
    return _Program(
        (_text("vendor", "uplot.css"), _text("assets", "page.css")),
        tuple(_library(name, packages) for name in _LIBRARIES),
        "".join(_module(name) for name in _in_order("main", [])),
    )


def _text(*path: str) -> str:
    return _ROOM.joinpath(*path).read_text(encoding="utf-8")


def _library(name: str, packages: Sequence[dict[str, Any]]) -> str:
    """Return the text of a library, with its licence before it."""
    package = next(one for one in packages for file in one["files"] if file["to"] == name)
    licence = _text("vendor", f"{package['name']}.LICENSE").replace("*/", "* /")
    head = f"/*! {package['name']} {package['version']}, {package['license']}\n\n{licence}*/\n"
    return head + _SOURCE_MAP.sub("", _text("vendor", name))


def _in_order(name: str, done: list[str]) -> list[str]:
    """Return the names of a module and its imports, each after its own imports."""
    for imported in _IMPORT.findall(_text("assets", f"{name}.js")):
        if imported not in done:
            _in_order(imported, done)
    done.append(name)
    return done


def _module(name: str) -> str:
    """Return a module's text without imports and exports: all share one scope in the page."""
    text = _text("assets", f"{name}.js")
    return _EXPORT.sub("", _IMPORT.sub("", text))
