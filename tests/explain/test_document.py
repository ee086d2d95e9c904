"""Documents as plain values, tables and HTML."""

from __future__ import annotations

import sys

import msgspec
import pytest

from kubesched.explain.document import Document


class Part(msgspec.Struct, frozen=True, rename="camel"):
    """A record."""

    pod_name: str
    size: dict[str, int]


class Outcome(Document, frozen=True):
    """A document."""

    sentence: str
    parts: tuple[Part, ...] = ()
    names: tuple[str, ...] = ()


class Mixed(Document, frozen=True):
    """A document whose records lack values."""

    parts: tuple[dict[str, float | None], ...]


class Nodes(Document, frozen=True):
    """A document whose records have resources."""

    rows: tuple[dict[str, object], ...]


OUTCOME = Outcome("<b>", (Part("a", {"cpu": 1}), Part("b", {"cpu": 2})), ("x", "y"))


def test_plain_values() -> None:
    """Lists instead of tuples, JSON's names, apiVersion and kind first."""
    assert OUTCOME.to_dict() == {
        "apiVersion": "kubesched.dev/v1",
        "kind": "Outcome",
        "sentence": "<b>",
        "parts": [{"podName": "a", "size": {"cpu": 1}}, {"podName": "b", "size": {"cpu": 2}}],
        "names": ["x", "y"],
    }


def test_tables_are_flat() -> None:
    """Nested records become columns."""
    assert OUTCOME.table("parts") == [
        {"podName": "a", "size.cpu": 1},
        {"podName": "b", "size.cpu": 2},
    ]


def test_resources_are_columns() -> None:
    """Every row has the same ones, so that columns can be compared and sorted."""
    uses = ({"resource": "cpu", "share": 0.5}, {"resource": "nvidia.com/gpu", "share": 0.25})
    outcome = Nodes(({"name": "n", "resources": uses},))
    assert outcome.table("rows") == [
        {"name": "n", "resources.cpu.share": 0.5, "resources.nvidia.com/gpu.share": 0.25}
    ]


def test_only_records_are_a_table() -> None:
    """Other fields are an error that names the field."""
    with pytest.raises(KeyError, match=r"Outcome has no field nope; its lists are .*parts"):
        OUTCOME.table("nope")
    with pytest.raises(ValueError, match=r"Outcome\.names is not a list of records"):
        OUTCOME.table("names")


def test_html_is_escaped() -> None:
    """Names cannot add markup to a notebook."""
    html = OUTCOME._repr_html_()
    assert "<h4>&lt;b&gt;</h4>" in html
    assert "<h5>parts (2)</h5>" in html
    assert "<td>x, y</td>" in html


def test_html_leaves_out_what_is_empty() -> None:
    """Columns without a value, and insignificant digits."""
    html = Nodes(({"name": "n", "zone": None, "share": 1 / 3},))._repr_html_()
    assert "<tr><th>name</th><th>share</th></tr><tr><td>n</td><td>0.3333</td></tr>" in html
    assert "<td>86400</td>" in Nodes(({"seconds": 86400.0},))._repr_html_()


def test_long_tables_are_cut() -> None:
    """Twenty rows, and how many more there are."""
    html = Outcome("", tuple(Part(str(at), {}) for at in range(25)))._repr_html_()
    assert html.count("<tr><td>") == 20
    assert "and 5 more" in html


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_missing_library_is_named(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the command that installs it."""
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ImportError, match=f"pip install {library}"):
        getattr(OUTCOME, f"to_{library}")("parts")


def test_data_frames_have_the_rows() -> None:
    """Each nested value is a column."""
    rows = OUTCOME.table("parts")
    assert rows == OUTCOME.to_pandas("parts").to_dict("records")
    assert rows == OUTCOME.to_polars("parts").to_dicts()


def test_late_values_have_their_type() -> None:
    """A column's type is that of all rows, not of the first ones."""
    shares = tuple({"share": None if at < 150 else 0.5} for at in range(151))
    outcome = Mixed(shares)
    assert outcome.to_polars("parts")["share"].to_list() == [one["share"] for one in shares]
    assert outcome.to_pandas("parts")["share"].max() == 0.5
