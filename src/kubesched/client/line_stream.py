"""Lines of a stream, of any length, from chunks of any size."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable


async def lines_of(read: Callable[[], Awaitable[bytes]]) -> AsyncIterator[bytes]:
    r"""Yield the lines without their ends; empty ones are left out.

    What follows the last line feed is a line too: only its reader can tell whether it is whole.

    Args:
        read: Returns the next chunk, b"" at the end.
    """
    # A long line comes in many chunks; joining them once keeps the cost linear.
    pieces: list[bytes] = []
    while chunk := await read():
        lines = chunk.split(b"\n")
        if len(lines) == 1:
            pieces.append(chunk)
            continue
        if pieces:
            pieces.append(lines[0])
            lines[0] = b"".join(pieces)
            pieces.clear()
        rest = lines.pop()
        for line in lines:
            if line:
                yield line
        if rest:
            pieces.append(rest)
    if pieces:
        yield b"".join(pieces)
