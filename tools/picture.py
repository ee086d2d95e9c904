"""Draws docs/images/explain.svg: the output of `kubesched explain` on a terminal.

`--check` only compares and exits 1 if the picture is stale.
"""

from __future__ import annotations

import io
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from fcntl import ioctl
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "images" / "explain.svg"
COMMAND = ("kubesched", "explain", "checkout-0", "examples/demo/cluster.yaml")
COLUMNS = 80


def on_terminal(command: tuple[str, ...], columns: int = COLUMNS) -> str:
    """Run a command on a pseudo-terminal and return its output."""
    ours, theirs = pty.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    program = str(Path(sys.executable).parent / command[0])
    environment = {
        name: value for name, value in os.environ.items() if name not in {"NO_COLOR", "COLUMNS"}
    }
    with subprocess.Popen(  # noqa: S603 - our own command
        [program, *command[1:]],
        cwd=ROOT,
        env={**environment, "TERM": "xterm-256color", "PYTHONUTF8": "1"},
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
    ):
        os.close(theirs)
        return _read_all(ours).decode().replace("\r\n", "\n")  # as the terminal driver sends it


def _read_all(terminal: int) -> bytes:
    with os.fdopen(terminal, "rb", buffering=0) as stream:
        parts: list[bytes] = []
        while True:
            try:
                part = stream.read(1 << 16)
            except OSError:  # Linux raises it when the other end is closed
                break
            if not part:
                break
            parts.append(part)
    return b"".join(parts)


def picture() -> str:
    """Return the picture as SVG, without external fonts."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(f"[bold]$[/bold] {' '.join(COMMAND)}", highlight=False)
    console.print(Text.from_ansi(on_terminal(COMMAND)))
    svg = console.export_svg(title="kubesched explain")
    without_fonts = re.sub(r"\s*@font-face \{.*?\}", "", svg, flags=re.DOTALL)
    lines = without_fonts.replace("Fira Code", "ui-monospace, Menlo, Consolas").splitlines()
    return "".join(f"{line.rstrip()}\n" for line in lines)


def main() -> int:
    """Draw the picture, or compare it with `--check`."""
    drawn = picture()
    if "--check" in sys.argv[1:]:
        if PICTURE.read_text(encoding="utf-8") == drawn:
            return 0
        sys.stderr.write(f"{PICTURE.relative_to(ROOT)} is stale: run tools/picture.py\n")
        return 1
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(drawn, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
