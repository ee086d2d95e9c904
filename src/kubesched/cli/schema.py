"""`kubesched schema`: the JSON Schemas of what commands print with `-o json`, and read."""

from __future__ import annotations

from typing import Any

import msgspec

from kubesched.cli.output import TextTable, write_line, writer
from kubesched.inputs.errors import UserError, did_you_mean
from kubesched.reports import DOCUMENTS, schema_of, schema_of_input
from kubesched.simulator.scenario import Scenario
from kubesched.sweep.spec import SweepSpec


def schema(kind: str | None) -> None:
    """Print the schema of a kind, or the list of kinds; raises UserError for an unknown one."""
    inputs: dict[str, type[msgspec.Struct]] = {"Scenario": Scenario, "Sweep": SweepSpec}

    def found(name: str) -> dict[str, Any]:
        return schema_of_input(inputs[name], name) if name in inputs else schema_of(name)

    kinds = (*DOCUMENTS, *inputs)
    if kind is None:
        rows = [(name, found(name)["description"]) for name in kinds]
        writer().table(TextTable(("kind", "what it is"), rows), indent=0)
    elif kind in kinds:
        write_line(msgspec.json.format(msgspec.json.encode(found(kind)).decode(), indent=2))
    else:
        hint = did_you_mean(kind, kinds, f"there are {', '.join(kinds)}", most=1)
        raise UserError(f"schema {kind}: there is no such kind of document; {hint}")
