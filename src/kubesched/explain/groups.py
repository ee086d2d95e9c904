"""Groups of nodes that were rejected for the same reason, with counts and a few names.

Invariants: every rejected node is in exactly one group, that of its first rejection.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from kubesched.explain.report import Answer, NodeVerdict, NotHelped


class SameDetail(msgspec.Struct, frozen=True):
    """Nodes of a group with the same detail."""

    detail: str
    nodes: tuple[str, ...]


class ReasonGroup(msgspec.Struct, frozen=True):
    """Nodes rejected by the same plugin with the same message.

    Attributes:
        plugin: The plugin that rejected them.
        code: The status code's name.
        message: The reasons as one text.
        count: Number of nodes.
        details: The details, most frequent first; together they have all nodes.
    """

    plugin: str
    code: str
    message: str
    count: int
    details: tuple[SameDetail, ...]


def rejection_groups(verdicts: Iterable[NodeVerdict]) -> tuple[ReasonGroup, ...]:
    """Group nodes by their first rejection, the largest group first."""
    return _groups((v.node, v.rejections[0]) for v in verdicts if v.rejections)


def not_helped_groups(nodes: Iterable[NotHelped]) -> tuple[ReasonGroup, ...]:
    """Group nodes by the reason why preemption does not help there, the largest group first."""
    return _groups((node.node, node.answer) for node in nodes)


def _groups(answers: Iterable[tuple[str, Answer]]) -> tuple[ReasonGroup, ...]:
    found: dict[tuple[str, str, str], dict[str, list[str]]] = {}
    for node, answer in answers:
        details = found.setdefault((answer.plugin, answer.code, answer.message), {})
        details.setdefault(answer.detail, []).append(node)
    groups = (
        ReasonGroup(
            plugin,
            code,
            message,
            sum(map(len, details.values())),
            tuple(
                SameDetail(detail, tuple(nodes))
                # The sort is stable: equally frequent details keep the order of their first node.
                for detail, nodes in sorted(details.items(), key=lambda item: -len(item[1]))
            ),
        )
        for (plugin, code, message), details in found.items()
    )
    return tuple(sorted(groups, key=lambda group: -group.count))
