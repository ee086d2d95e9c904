"""The report of `kubesched shadow` as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kubesched.cli.output import Writer, simple_table
from kubesched.explain.sentences import count
from kubesched.explain.shadow_report import Disagreement, ShadowReport, ShadowVerdict

_INDENT: Final = 2
_EXAMPLES_MAX: Final = 10
_HEADINGS: Final = (
    (ShadowVerdict.DIFFERENT, "Different"),
    (ShadowVerdict.SAMPLED, "Lower score, in a cluster of which schedulers look at a part"),
    (ShadowVerdict.CHANGED, "The cluster changed in between"),
    (ShadowVerdict.TIE, "Ties"),
)


def write_shadow(writer: Writer, report: ShadowReport) -> None:
    """Write the report."""
    writer.headline(_headline(report))
    for note in report.notes:
        writer.line(f"Note: {note}", dim=True)
    writer.heading("Decisions")
    rows = (
        ("agreed", str(report.agreed)),
        ("another node of the same score", str(report.ties)),
        ("the cluster changed in between", str(report.changed)),
        ("lower score, nodes were sampled", str(report.sampled)),
        ("different", str(report.different)),
        ("still pending at the end", str(report.pending)),
    )
    writer.table(simple_table(("outcome", "pods"), rows), indent=_INDENT)
    if report.agreed_late:
        late = count(report.agreed_late, "agreement")
        writer.line(f"{late} after the cluster had changed since the pod appeared", indent=_INDENT)
    if report.skipped:
        writer.line(f"{count(report.skipped, 'pod')} of pod groups not judged", indent=_INDENT)
    for verdict, heading in _HEADINGS:
        found = [each for each in report.disagreements if each.verdict is verdict]
        _write_examples(writer, heading, found)


def _headline(report: ShadowReport) -> str:
    who = report.scheduler_name
    if not report.judged:
        return f"{who} decided nothing in {report.seconds:.0f} s, on {_nodes(report)}."
    explained = report.judged - report.different
    share = f"{explained / report.judged:.1%}" if report.different else "all"
    judged = count(report.judged, "decision")
    return (
        f"{judged} of {who} in {report.seconds:.0f} s, on {_nodes(report)}: {share} as kubesched's."
    )


def _nodes(report: ShadowReport) -> str:
    return count(report.nodes, "node")


def _write_examples(writer: Writer, heading: str, found: Sequence[Disagreement]) -> None:
    if not found:
        return
    writer.heading(heading)
    for each in found[:_EXAMPLES_MAX]:
        writer.line(f"{each.pod}: {each.sentence}", indent=_INDENT)
    if len(found) > _EXAMPLES_MAX:
        writer.line(f"and {len(found) - _EXAMPLES_MAX} more; -o json has them", indent=_INDENT)
