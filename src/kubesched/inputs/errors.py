"""UserError: what is wrong with an input, and how to put it right."""

from __future__ import annotations

from typing import Final

EXIT_INPUT: Final = 2
"""What a command ends with if its input is wrong."""


class UserError(Exception):
    """Something that the user can put right.

    Attributes:
        messages: One line per field error: what, where, and the remedy.
        exit_code: What the command ends with.
    """

    def __init__(self, *messages: str, exit_code: int = EXIT_INPUT) -> None:
        super().__init__("\n".join(messages))
        self.messages = messages
        self.exit_code = exit_code
