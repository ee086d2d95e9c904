"""`kubesched schema`: the JSON Schemas of what commands print with `-o json`."""

from __future__ import annotations

import click


@click.command()
@click.argument("kind", required=False)
def schema(kind: str | None) -> None:
    """Print the JSON Schema of a KIND of document, or list the kinds.

    Commands print documents with `-o json` and `-o yaml`. Each has an apiVersion and a kind. Within
    kubesched.dev/v1 fields are added, never removed or renamed: ignore those that you do not know.

    \b
    Examples:
      kubesched schema
      kubesched schema WhyReport > why-report.schema.json
    """  # noqa: D301 - \b stops click from rewrapping the paragraph
    import msgspec

    from kubesched.answers.documents import DOCUMENTS, schema_of
    from kubesched.cli.output import simple_table, write_line, writer
    from kubesched.inputs.errors import UserError
    from kubesched.inputs.near_names import near_names

    if kind is None:
        rows = [(name, schema_of(name)["description"]) for name in DOCUMENTS]
        writer().table(simple_table(("kind", "what it is"), rows))
    elif kind in DOCUMENTS:
        encoded = msgspec.json.encode(schema_of(kind)).decode()
        write_line(msgspec.json.format(encoded, indent=2))
    else:
        near = near_names(kind, DOCUMENTS)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(DOCUMENTS)}"
        raise UserError(f"schema {kind}: there is no such kind of document; {hint}")
