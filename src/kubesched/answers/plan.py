"""Plans: changes of a cluster, one step after another.

    steps:
    - drain: node-7
    - addNodes: {count: 3, like: node-1}
    - scale: {workload: deploy/web, namespace: shop, replicas: 12}

Each step is a mapping with one key, the step's name. Nodes are a name, a list of names, or a label
selector such as `pool=a`.

Rejects:  unknown steps and fields, and values of a wrong type; each field error names its path.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple, TypeAlias

import msgspec

from kubesched.answers.node_shapes import (
    RESOURCES,
    NodeShape,
    checked_label,
    is_resource,
    parse_shape,
    parse_taint,
)
from kubesched.answers.workload_pods import read_manifests
from kubesched.api.codec import field_problem
from kubesched.api.core import Taint
from kubesched.api.decode import STANDARD_INPUT
from kubesched.api.meta import KubeObject
from kubesched.api.quantity import parse_quantity
from kubesched.api.yaml_syntax import YamlError, load_documents
from kubesched.inputs.errors import UserError, did_you_mean
from kubesched.inputs.pod_names import Workload, no_such, workload_named

Names: TypeAlias = str | Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]
_Count = Annotated[int, msgspec.Meta(ge=1, le=10_000)]
_Replicas = Annotated[int, msgspec.Meta(ge=0, le=100_000)]
_Priority = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]


class PlanStep(
    msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, kw_only=True
):
    """What steps have in common: `check` finds errors that types cannot express."""

    def check(self) -> None:
        """Check the values; raises ValueError with `field: problem`."""


def _check_labels(field: str, labels: Mapping[str, str]) -> None:
    try:
        for key, value in labels.items():
            checked_label(key, value)
    except ValueError as error:
        raise ValueError(f"{field}: {error}") from error


class OfNodes(PlanStep, frozen=True):
    """A step for some nodes, which may be written without the word `nodes`."""

    nodes: Names


class DrainNodes(OfNodes, frozen=True):
    """Drain nodes, as far as disruption budgets allow."""


class CordonNodes(OfNodes, frozen=True):
    """Make nodes unschedulable."""


class UncordonNodes(OfNodes, frozen=True):
    """Make nodes schedulable."""


class RemoveNodes(OfNodes, frozen=True):
    """Remove nodes at once; their pods go with them, and controllers create them again."""


class LoseZone(PlanStep, frozen=True):
    """Remove all nodes of a zone at once."""

    zone: str


class AddNodes(PlanStep, frozen=True):
    """Add empty nodes, like an existing one or of a shape in words."""

    count: _Count = 1
    like: str = ""
    template: str = ""

    def check(self) -> None:
        """Check that there is one shape."""
        if bool(self.like) == bool(self.template):
            raise ValueError("like: name either a node with `like`, or a shape with `template`")
        self.shape()

    def shape(self) -> NodeShape | None:
        """Return the shape that the template describes, None if there is no template."""
        try:
            return parse_shape(self.template) if self.template else None
        except ValueError as error:
            raise ValueError(f"template: {error}") from error


class LabelNodes(OfNodes, frozen=True):
    """Set and remove labels of nodes."""

    set: dict[str, str] = {}
    remove: tuple[str, ...] = ()

    def check(self) -> None:
        """Check that a label is named, and that those to set are valid."""
        if not (self.set or self.remove):
            raise ValueError("set: write the labels to set, or remove with those to remove")
        _check_labels("set", self.set)


class TaintNodes(OfNodes, frozen=True):
    """Add and remove taints of nodes; NoExecute evicts pods without asking budgets."""

    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()

    def check(self) -> None:
        """Check that a taint is named, and that those to add can be parsed."""
        if not (self.add or self.remove):
            raise ValueError("add: write the taints to add, or remove with those to remove")
        self.taints()

    def taints(self) -> list[Taint]:
        """Return the taints to add."""
        try:
            return [parse_taint(text) for text in self.add]
        except ValueError as error:
            raise ValueError(f"add: {error}") from error


class ResizeNodes(OfNodes, frozen=True):
    """Give nodes other capacities."""

    capacity: Annotated[dict[str, str | int], msgspec.Meta(min_length=1)]

    def check(self) -> None:
        """Check that resources are known, and that amounts can be parsed."""
        for resource, amount in self.capacity.items():
            if not is_resource(resource):
                raise ValueError(f"capacity.{resource}: it is not known; use {RESOURCES}")
            try:
                is_negative = parse_quantity(amount).sign < 0
            except ValueError as error:
                raise ValueError(f"capacity.{resource}: {error}") from error
            if is_negative:
                raise ValueError(f"capacity.{resource}: {amount} must not be negative")


class OfWorkload(PlanStep, frozen=True, kw_only=True):
    """A step for a workload, written as `deploy/web`."""

    workload: str
    namespace: str = "default"

    def check(self) -> None:
        """Check that the kind is known."""
        if not workload_named(self.workload):
            raise ValueError(
                f"workload: {self.workload} is not a workload; write KIND/NAME, such as deploy/web"
            )

    @property
    def kind_and_name(self) -> Workload:
        """The kind as objects name it, and the name."""
        found = workload_named(self.workload)
        assert found is not None, "it was checked"
        return found


class ScaleWorkload(OfWorkload, frozen=True, kw_only=True):
    """Give a workload another number of pods."""

    replicas: _Replicas


class SetPriority(OfWorkload, frozen=True):
    """Give the pods of a workload another priority; those that run keep running."""

    priority: _Priority | None = None
    class_name: str = ""

    def check(self) -> None:
        """Check that there is one priority."""
        super().check()
        if (self.priority is None) == (not self.class_name):
            raise ValueError("priority: write either priority or className")


class SetBudget(PlanStep, frozen=True):
    """Change, add or delete a disruption budget."""

    name: str
    namespace: str = "default"
    min_available: _Replicas | str | None = None
    max_unavailable: _Replicas | str | None = None
    match_labels: dict[str, str] = {}
    delete: bool = False

    def check(self) -> None:
        """Check that exactly one change is given, and that the labels are valid."""
        _check_labels("matchLabels", self.match_labels)
        given = [self.min_available is not None, self.max_unavailable is not None, self.delete]
        if sum(given) != 1:
            raise ValueError("minAvailable: write one of minAvailable, maxUnavailable and delete")
        for name, amount in (
            ("minAvailable", self.min_available),
            ("maxUnavailable", self.max_unavailable),
        ):
            if isinstance(amount, str) and not _PERCENTAGE.fullmatch(amount):
                raise ValueError(
                    f'{name}: "{amount}" is neither a number nor a percentage such as 50%'
                )


class ApplyManifest(PlanStep, frozen=True):
    """Create or replace the objects of a manifest; workloads get their pods."""

    file: str


STEPS: Final[Mapping[str, type[PlanStep]]] = {
    "drain": DrainNodes,
    "cordon": CordonNodes,
    "uncordon": UncordonNodes,
    "removeNode": RemoveNodes,
    "addNodes": AddNodes,
    "loseZone": LoseZone,
    "label": LabelNodes,
    "taint": TaintNodes,
    "resize": ResizeNodes,
    "scale": ScaleWorkload,
    "setPriority": SetPriority,
    "setBudget": SetBudget,
    "apply": ApplyManifest,
}
_SHORT: Final = {OfNodes: "nodes", LoseZone: "zone", ApplyManifest: "file"}
"""Steps of which one field may be written alone, as in `drain: node-7`."""
_PERCENTAGE: Final = re.compile("(100|[0-9]{1,2})%")
_UNKNOWN_FIELD: Final = re.compile("object contains unknown field `(.*)`")
_HEADER: Final = ("apiVersion", "kind", "steps")


class PlanInput(NamedTuple):
    """The steps of a plan, each with its path, and the objects of each file that a step applies.

    `place` begins errors: the file and a colon, "" for a plan that is not a file. `warnings` are
    about the files that steps apply.
    """

    place: str
    steps: list[tuple[str, PlanStep]]
    manifests: dict[str, list[KubeObject]]
    warnings: list[str]


def read_plan(given: Path | Mapping[str, Any]) -> PlanInput:
    """Return a plan from plain values or a YAML file, and the files beside it that it applies.

    Raises UserError if the plan is wrong or a file does not exist, and DecodeError.
    """
    place, directory, raw = "", Path(), given
    if isinstance(given, Path):
        place = "stdin: " if str(given) == STANDARD_INPUT else f"{given}: "
        directory, raw = given.parent, _plan_in(given, place)
    plan = PlanInput(place, decode_plan(raw, place), {}, [])
    for path, step in plan.steps:
        if isinstance(step, ApplyManifest) and step.file not in plan.manifests:
            file = directory / step.file
            if not file.exists():
                raise UserError(f"{place}{path}.file: {file}: there is no such file")
            found, warnings = read_manifests([file], "default", needs_workload=False)
            plan.manifests[step.file] = found
            plan.warnings.extend(warnings)
    return plan


def _plan_in(file: Path, place: str) -> Any:
    try:
        data = sys.stdin.buffer.read() if str(file) == STANDARD_INPUT else file.read_bytes()
        documents = [value for _, value in load_documents(data.decode(), rejects_repeats=True)]
    except (YamlError, UnicodeDecodeError) as error:
        raise UserError(f"{place}it is not YAML: {error}") from error
    except OSError as error:
        raise UserError(f"{place}it cannot be read: {error.strerror}") from error
    if len(documents) != 1:
        raise UserError(
            f"{place}a plan is one document, and there are {len(documents)}; name the plan before "
            "the files of the cluster"
        )
    return documents[0]


def decode_plan(raw: object, place: str = "") -> list[tuple[str, PlanStep]]:
    """Return the steps of a plan, given as plain values, each with its path.

    Raises UserError with every field error, after the place: `path: problem`, with the remedy.
    """
    if not isinstance(raw, dict) or not isinstance(raw.get("steps"), list):
        raise UserError(f"{place}steps: write a list of steps, as in `steps: [{{drain: node-7}}]`")
    errors = [
        f"{name}: unknown field; a plan has {', '.join(_HEADER)}"
        for name in raw
        if name not in _HEADER
    ]
    found: list[tuple[str, PlanStep]] = []
    if not raw["steps"]:
        errors.append("steps: there is none; write at least one")
    for number, item in enumerate(raw["steps"]):
        path = f"steps[{number}]"
        if not isinstance(item, dict) or len(item) != 1:
            errors.append(f"{path}: write one step per item, as in `- drain: node-7`")
            continue
        [(name, value)] = item.items()
        try:
            found.append((f"{path}.{name}", _decoded(name, value)))
        except ValueError as error:
            errors.append(f"{path}.{error}")
    if errors:
        raise UserError(*(f"{place}{message}" for message in errors))
    return found


def _decoded(name: str, value: Any) -> PlanStep:
    """Return a step; raises ValueError with `NAME.path: problem`, where NAME is the step's."""
    step = STEPS.get(name)
    if step is None:
        hint = did_you_mean(name, STEPS, f"there are {', '.join(STEPS)}", most=1)
        raise ValueError(f"{name}: there is no such step; {hint}")
    if not isinstance(value, dict):
        short = next((field for type_, field in _SHORT.items() if issubclass(step, type_)), None)
        if short is None:
            fields = ", ".join(field.encode_name for field in msgspec.structs.fields(step))
            raise ValueError(f"{name}: write a mapping with the fields {fields}")
        value = {short: value}
    try:
        found = msgspec.convert(value, step)
    except msgspec.ValidationError as error:
        problem, path = field_problem(error, value)
        raise ValueError(f"{name}{path.removeprefix('$')}: {_reworded(problem, step)}") from error
    try:
        found.check()
    except ValueError as error:
        raise ValueError(f"{name}.{error}") from error
    return found


def _reworded(problem: str, step: type[PlanStep]) -> str:
    found = _UNKNOWN_FIELD.fullmatch(problem)
    if found is None:
        return problem
    return no_such("field", found[1], [one.encode_name for one in msgspec.structs.fields(step)])
