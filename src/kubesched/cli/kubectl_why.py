"""`kubectl why`: the command `kubesched why` as a plugin, which kubectl finds on PATH."""

from __future__ import annotations

import sys
from typing import Final

from kubesched.cli.commands import command
from kubesched.cli.main import ended, prepare_streams

_NAME: Final = "kubectl why"


def main() -> None:
    """Run the command; the entry point `kubectl-why`."""
    prepare_streams()
    why = command("why")
    why.help = (why.help or "").replace("kubesched why", _NAME)
    names = ["-h", "--help"]
    sys.exit(
        ended(lambda: why.main(prog_name=_NAME, standalone_mode=False, help_option_names=names))
    )
