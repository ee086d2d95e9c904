"""`kubesched schema`: kinds and schemas."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from kubesched.config.documents import read_document
from kubesched.reports import DOCUMENTS, schema_of

from .cluster import refused, run

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def test_kinds_are_listed() -> None:
    """One line each, with what it is."""
    lines = run("schema").stdout.splitlines()
    assert [line.split()[0] for line in lines[1:]] == [*DOCUMENTS, "Scenario", "Sweep"]


def test_schema() -> None:
    """The schema is JSON."""
    assert json.loads(run("schema", "WhyReport").stdout) == schema_of("WhyReport")


@pytest.mark.parametrize(
    ("kind", "file", "wrong"),
    [
        ("Scenario", "batch-and-web.yaml", {"duration": 5, "node": []}),
        ("Sweep", "sweep.yaml", {"parameters": [{"name": "a"}], "seed": 1}),
    ],
)
def test_files_that_people_write_have_a_schema(
    kind: str, file: str, wrong: dict[str, object]
) -> None:
    """The examples obey it; unknown and missing fields and wrong types do not."""
    validator = jsonschema.Draft202012Validator(json.loads(run("schema", kind).stdout))
    text = (EXAMPLES / "scenarios" / file).read_text()
    document = read_document(text, [])
    assert [] == list(validator.iter_errors(document))
    assert 2 == len(list(validator.iter_errors({**document, **wrong})))


def test_an_unknown_kind() -> None:
    """The error has a suggestion."""
    error = "schema WhyReprt: there is no such kind of document; did you mean WhyReport?"
    assert error == refused("schema", "WhyReprt")
