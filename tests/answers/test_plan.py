"""Plans: accepted fields, and the paths of field errors."""

from __future__ import annotations

from typing import Any

import pytest

from kubesched.answers.plan import AddNodes, DrainNodes, ScaleWorkload, decode_plan
from kubesched.inputs.errors import UserError


def test_steps_keep_their_order() -> None:
    """Each has its path; a step may be a single field."""
    raw = {
        "steps": [
            {"drain": ["a", "b"]},
            {"addNodes": {"count": 2, "template": "cpu=4,memory=8Gi"}},
            {"scale": {"workload": "deploy/web", "replicas": 3}},
        ]
    }
    assert decode_plan(raw) == [
        ("steps[0].drain", DrainNodes(nodes=("a", "b"))),
        ("steps[1].addNodes", AddNodes(count=2, template="cpu=4,memory=8Gi")),
        ("steps[2].scale", ScaleWorkload(workload="deploy/web", replicas=3)),
    ]


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ({"loseZon": "a"}, "steps[0].loseZon: there is no such step; did you mean loseZone?"),
        ({"drain": 3}, "steps[0].drain.nodes: expected `str | array`, got `int`; write it in q"),
        ({"label": {"nodes": "a", "set": {"b": 1}}}, "steps[0].label.set.b: expected `str`, got"),
        ({"drain": {"node": "a"}}, "steps[0].drain: node: there is no such field; did you mean no"),
        ({"drain": "a", "cordon": "b"}, "steps[0]: write one step per item, as in"),
        ({"addNodes": {"count": 0}}, "steps[0].addNodes.count: expected `int` >= 1"),
        ({"addNodes": {"count": 1}}, "steps[0].addNodes.like: name either a node"),
        ({"addNodes": {"template": "cpu=1"}}, "steps[0].addNodes.template: memory missing"),
        ({"addNodes": "a"}, "steps[0].addNodes: write a mapping with the fields count"),
        ({"taint": {"nodes": "a", "add": ["x"]}}, "steps[0].taint.add: x: write a taint as"),
        ({"taint": {"nodes": "a"}}, "steps[0].taint.add: write the taints to add, or remove"),
        ({"label": {"nodes": "a"}}, "steps[0].label.set: write the labels to set, or remove"),
        ({"label": {"nodes": "a", "set": {"b c": ""}}}, "steps[0].label.set: b c=: name part"),
        (
            {"setPriority": {"workload": "deploy/web", "priority": 5_000_000_000}},
            "steps[0].setPriority.priority: expected `int` <= 2147483647",
        ),
        ({"drain": []}, "steps[0].drain.nodes: expected `array` of length >= 1"),
        ({"resize": {"nodes": "a", "capacity": {}}}, "steps[0].resize.capacity: expected `object`"),
        (
            {"resize": {"nodes": "a", "capacity": {"cpus": 4}}},
            "steps[0].resize.capacity.cpus: it is not known; use cpu, memory",
        ),
        ({"resize": {"nodes": "a", "capacity": {"cpu": "x"}}}, "steps[0].resize.capacity.cpu: "),
        (
            {"scale": {"workload": "web", "replicas": 1}},
            "steps[0].scale.workload: web is not a workload; write KIND/NAME",
        ),
        (
            {"scale": {"workload": "deploy/web", "replica": 1}},
            "steps[0].scale: replica: there is no such field; did you mean replicas?",
        ),
        (
            {"setPriority": {"workload": "deploy/web"}},
            "steps[0].setPriority.priority: write either priority or className",
        ),
        (
            {"setBudget": {"name": "web", "minAvailable": "5"}},
            'steps[0].setBudget.minAvailable: "5" is neither a number nor a percentage',
        ),
        (
            {"setBudget": {"name": "web", "maxUnavailable": "150%"}},
            'steps[0].setBudget.maxUnavailable: "150%" is neither a number nor a percentage',
        ),
        (
            {"setBudget": {"name": "web", "minAvailable": -1}},
            "steps[0].setBudget.minAvailable: expected `int` >= 0",
        ),
        (
            {"setBudget": {"name": "web", "matchLabels": {"a b": ""}, "minAvailable": 1}},
            "steps[0].setBudget.matchLabels: a b=: name part",
        ),
        (
            {"setBudget": {"name": "web"}},
            "steps[0].setBudget.minAvailable: write one of minAvailable",
        ),
    ],
)
def test_field_errors_have_path_and_remedy(step: dict[str, Any], message: str) -> None:
    """One message has all of it."""
    with pytest.raises(UserError) as raised:
        decode_plan({"steps": [step]})
    (found,) = raised.value.messages
    assert found.startswith(message)


@pytest.mark.parametrize("raw", [None, [], {}, {"steps": {}}, {"steps": []}])
def test_a_plan_needs_steps(raw: object) -> None:
    """A document without `steps` is an error."""
    with pytest.raises(match="steps: "):
        decode_plan(raw)


def test_all_field_errors_are_reported_at_once() -> None:
    """The message has all of them, not only the first."""
    with pytest.raises(UserError) as raised:
        decode_plan({"steps": [{"a": 1}, {"b": 2}], "more": 1})
    assert len(raised.value.messages) == 3
