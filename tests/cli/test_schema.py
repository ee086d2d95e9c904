"""`kubesched schema`: kinds and schemas."""

from __future__ import annotations

import json

from kubesched.answers.documents import DOCUMENTS, schema_of

from .cluster import run


def test_kinds_are_listed() -> None:
    """One line each, with what it is."""
    lines = run("schema").stdout.splitlines()
    assert [line.split()[0] for line in lines[1:]] == list(DOCUMENTS)


def test_a_schema_is_printed() -> None:
    """As JSON."""
    assert json.loads(run("schema", "WhyReport").stdout) == schema_of("WhyReport")


def test_an_unknown_kind() -> None:
    """Is an error with a suggestion."""
    result = run("schema", "WhyReprt")
    assert result.exit_code == 2
    assert result.stderr == (
        "kubesched: error: schema WhyReprt: there is no such kind of document; did you mean "
        "WhyReport?\n"
    )
