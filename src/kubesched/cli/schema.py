"""`kubesched schema`: the JSON Schemas of what commands print with `-o json`, and read."""

from __future__ import annotations

from typing import Any

import click


@click.command()
@click.argument("kind", required=False)
def schema(kind: str | None) -> None:
    """Print the JSON Schema of a KIND of document, or list the kinds.

    Commands print documents with `-o json` and `-o yaml`. Each has an apiVersion and a kind. Within
    kubesched.dev/v1 fields are added, never removed or renamed: ignore those that you do not know.
    Scenario and Sweep are files that people write; editors complete and check them by their schema.

    \b
    Examples:
      kubesched schema
      kubesched schema WhyReport > why-report.schema.json
    """
    import msgspec

    from kubesched.answers.documents import DOCUMENTS, schema_of, schema_of_input
    from kubesched.cli.output import write_line, writer
    from kubesched.explain.tables import TextTable
    from kubesched.inputs.errors import UserError, did_you_mean
    from kubesched.simulator.scenario import Scenario
    from kubesched.sweep.spec import SweepSpec

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
