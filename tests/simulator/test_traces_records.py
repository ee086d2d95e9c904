"""Tables in files: their forms, and files that are none."""

import gzip
import io

import polars as pl
import pytest

from kubesched.api.codec import DecodeError
from kubesched.simulator.traces import read_file, rows_of

TABLE = "name,arrival,duration,cpu\na,0,60,1\nb,1,,0.5\n"
ROWS = [
    (1, ["name", "arrival", "duration", "cpu"]),
    (2, ["a", "0", "60", "1"]),
    (3, ["b", "1", "", "0.5"]),
]


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(TABLE.encode(), id="plain"),
        pytest.param(gzip.compress(TABLE.encode()), id="compressed"),
        pytest.param(b"\xef\xbb\xbf" + TABLE.encode(), id="byte order mark"),
        pytest.param(TABLE.replace("\n", " \r\n").encode(), id="Windows' line ends"),
    ],
)
def test_forms_of_csv(data: bytes) -> None:
    """They make no difference."""
    assert ROWS == [*rows_of(data, "f")]


def test_blank_lines_are_skipped() -> None:
    """The others keep their line numbers."""
    assert [(2, ["name"]), (4, ["a"])] == [*rows_of(b"\nname\n\na\n", "f")]


def test_parquet_is_read_like_csv() -> None:
    """Numbers that are whole are written without a fraction, and null is not a value."""
    data = io.BytesIO()
    columns = {"name": ["a", "b"], "arrival": [0, 1], "duration": [60.0, None], "cpu": [1.0, 0.5]}
    pl.DataFrame(columns).write_parquet(data)
    assert ROWS == [*rows_of(data.getvalue(), "f")]


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(gzip.compress(TABLE.encode())[:-9], id="truncated"),
        pytest.param(b"\x1f\x8bnothing", id="no gzip"),
        pytest.param(TABLE.encode() + b"\xff,1,,\n", id="no UTF-8"),
        pytest.param(b"PAR1nothing", id="no Parquet"),
        pytest.param(b'name\n"a', id="open quote"),
    ],
)
def test_files_that_are_no_tables(data: bytes) -> None:
    """They are the user's error, which names the file."""
    with pytest.raises(DecodeError, match=r"^f: "):
        _ = [*rows_of(data, "f")]


@pytest.mark.parametrize("name", ["none.csv", "no\0name.csv"])
def test_files_that_cannot_be_read(name: str) -> None:
    """They are errors of the input."""
    with pytest.raises(DecodeError, match=r"it cannot be read: No such file|it is not a file name"):
        read_file(name)
