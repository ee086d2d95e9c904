from __future__ import annotations

import asyncio
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched.client.rest import lines_of


async def _lines(chunks: list[bytes]) -> list[bytes]:
    left = [*chunks, b""]

    async def read() -> bytes:
        return left.pop(0)

    return [line async for line in lines_of(read)]


@settings(max_examples=40)
@given(
    st.lists(st.binary(min_size=0, max_size=8).map(lambda b: b.replace(b"\r", b"\n"))), st.data()
)
def test_lines_do_not_depend_on_chunks(lines: list[bytes], data: st.DataObject) -> None:
    """Lines are the same for every division of a text into chunks."""
    text = b"\n".join(lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    edges = [0, *cuts, len(text)]
    chunks = [text[a:b] for a, b in pairwise(edges) if a < b]
    expected = [line for line in text.split(b"\n") if line]
    assert expected == asyncio.run(_lines(chunks))
