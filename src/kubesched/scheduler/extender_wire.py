"""The JSON bodies of HTTP extenders, with Go's field names; decoding ignores their case.

Upstream: staging/src/k8s.io/kube-scheduler/extender/v1/types.go (v1.36)
Reads:    responses of extenders
Differs:  pods and nodes are sent with the fields that kubesched keeps; of nodes in a response only
          the names are read; if several values have a wrong type, the error names the first field
          in the type's order, upstream the first in the text; null in a list of victims is skipped,
          upstream crashes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, TypeVar

import msgspec

from kubesched.api.core import Node, Pod
from kubesched.api.integers import is_int64
from kubesched.api.json_syntax import json_stream_error
from kubesched.api.meta import KubeObject
from kubesched.framework.preemption.report import Candidate
from kubesched.snapshot.pod_info import PodInfo

T = TypeVar("T")
K = TypeVar("K", bound=KubeObject)

_BLANKS: Final = " \t\r\n"


class WireError(ValueError):
    """A response that does not match the protocol."""


class FilterResult(msgspec.Struct, frozen=True):
    """The response to filter.

    Attributes:
        nodes: Names in `Nodes`; None if the list is absent.
        node_names: Names in `NodeNames`; None if the list is absent.
        failed: Node name -> reason, where evicting pods may help.
        failed_and_unresolvable: Node name -> reason, where it cannot help.
        error: The extender's error; empty on success.
    """

    nodes: tuple[str, ...] | None = None
    node_names: tuple[str, ...] | None = None
    failed: Mapping[str, str] = msgspec.field(default_factory=dict)
    failed_and_unresolvable: Mapping[str, str] = msgspec.field(default_factory=dict)
    error: str = ""


class MetaVictims(msgspec.Struct, frozen=True):
    """The uids of the victims on one node, most important first."""

    uids: tuple[str, ...] = ()
    pdb_violations: int = 0


# Requests.


def encode_args(pod: Pod, nodes: Sequence[Node], *, names_only: bool) -> bytes:
    """Return the request body of filter and prioritize."""
    args: dict[str, object] = {"Pod": _typeless(pod), "Nodes": None, "NodeNames": None}
    if names_only:
        args["NodeNames"] = [node.metadata.name for node in nodes]
    else:
        args["Nodes"] = {"metadata": {}, "items": [_typeless(node) for node in nodes]}
    return msgspec.json.encode(args)


def encode_preemption_args(pod: Pod, candidates: Sequence[Candidate], *, uids_only: bool) -> bytes:
    """Return the request body of preempt: the victims by node name, sorted."""
    victims = {
        each.node_name: {
            "Pods": [{"UID": one.uid} if uids_only else _typeless(one.pod) for one in each.victims],
            "NumPDBViolations": each.pdb_violations,
        }
        for each in sorted(candidates, key=lambda candidate: candidate.node_name)
    }
    args = {
        "Pod": _typeless(pod),
        "NodeNameToVictims": None if uids_only else victims,
        "NodeNameToMetaVictims": victims if uids_only else None,
    }
    return msgspec.json.encode(args)


def encode_binding_args(pod: PodInfo, node_name: str) -> bytes:
    """Return the request body of bind."""
    args = {
        "PodName": pod.name,
        "PodNamespace": pod.namespace,
        "PodUID": pod.uid,
        "Node": node_name,
    }
    return msgspec.json.encode(args)


def _typeless(item: K) -> K:
    """Return the object without kind and version, which upstream's objects in memory lack."""
    return msgspec.structs.replace(item, api_version="", kind="")


# Responses.


def decode_filter_result(body: bytes) -> FilterResult:
    """Decode the response to filter; raises WireError if it does not match the protocol."""
    fields, at = _struct(_first_value(body), _TOP, "ExtenderFilterResult")
    nodes, names = fields.get("nodes"), fields.get("nodenames")
    unresolvable = fields.get("failedandunresolvablenodes")
    return FilterResult(
        None if nodes is None else _node_list(nodes, at("Nodes")),
        None if names is None else _list(names, at("NodeNames"), "[]string", _text),
        _messages(fields.get("failednodes"), at("FailedNodes")),
        _messages(unresolvable, at("FailedAndUnresolvableNodes")),
        _text(fields.get("error"), at("Error")),
    )


def decode_host_priorities(body: bytes) -> tuple[tuple[str, int], ...]:
    """Decode the response to prioritize: node names and scores, in the order given.

    Raises WireError if the body does not match the protocol.
    """
    return _list(_first_value(body), _TOP, "v1.HostPriorityList", _host_priority)


def decode_preemption_result(body: bytes) -> dict[str, MetaVictims]:
    """Decode the response to preempt: the victims by node name.

    Raises WireError if the body does not match the protocol.
    """
    fields, at = _struct(_first_value(body), _TOP, "ExtenderPreemptionResult")
    place = at("NodeNameToMetaVictims")
    nodes = _map(fields.get("nodenametometavictims"), place, "map[string]*v1.MetaVictims")
    return {_text(name, place): _decoded_victims(each, place) for name, each in nodes.items()}


def decode_binding_error(body: bytes) -> str:
    """Decode the response to bind: the error, empty on success.

    Raises WireError if the body does not match the protocol.
    """
    fields, at = _struct(_first_value(body), _TOP, "ExtenderBindingResult")
    return _text(fields.get("error"), at("Error"))


def _host_priority(value: object, place: _Place) -> tuple[str, int]:
    fields, at = _struct(value, place, "HostPriority")
    return _text(fields.get("host"), at("Host")), _int64(fields.get("score"), at("Score"))


def _decoded_victims(value: object, place: _Place) -> MetaVictims:
    fields, at = _struct(value, place, "MetaVictims")
    pods = _list(fields.get("pods"), at("Pods"), "[]*v1.MetaPod", _uid)
    return MetaVictims(pods, _int64(fields.get("numpdbviolations"), at("NumPDBViolations")))


def _uid(value: object, place: _Place) -> str:
    fields, at = _struct(value, place, "MetaPod")
    return _text(fields.get("uid"), at("UID"))


def _node_list(value: object, place: _Place) -> tuple[str, ...]:
    fields, at = _struct(value, place, "NodeList")
    return _list(fields.get("items"), at("items"), "[]v1.Node", _node_name)


def _node_name(value: object, place: _Place) -> str:
    fields, of_node = _struct(value, place, "Node")
    metadata, at = _struct(fields.get("metadata"), of_node("metadata"), "ObjectMeta")
    return _text(metadata.get("name"), at("name"))


# Decoding as in Go: the first value counts, field names in any case, null equals absent.


class _Place(NamedTuple):
    """The position of a value in Go's error messages: the innermost type and the path of fields."""

    type: str = ""
    path: str = ""

    def error(self, value: object, type_: str) -> WireError:
        """Return the error for a value of the wrong type."""
        into = f"struct field {self.type}{self.path}" if self.type else "value"
        return WireError(f"json: cannot unmarshal {_kind(value)} into Go {into} of type {type_}")


_TOP: Final = _Place()
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


class _Decimal(NamedTuple):
    """A number that is not written as an integer."""

    text: str


def _kind(value: object) -> str:
    match value:
        case bool():
            return "bool"
        case int() | _Decimal():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
    return "object"


def _first_value(body: bytes) -> object:
    text = body.decode(errors="replace").lstrip(_BLANKS)
    try:
        value: object = _JSON.raw_decode(text)[0]
    except (ValueError, RecursionError) as error:
        raise WireError(json_stream_error(body) or f"the answer cannot be read: {error}") from error
    return value


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


_JSON: Final = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_Decimal)


def _struct(
    value: object, place: _Place, type_: str
) -> tuple[dict[str, object], Callable[[str], _Place]]:
    """Return a struct's fields by name in lower case, and what gives the place of each by name."""
    found = {name.casefold(): field for name, field in _map(value, place, f"v1.{type_}").items()}
    return found, lambda name: _Place(type_, f"{place.path}.{name}")


def _map(value: object, place: _Place, type_: str) -> dict[str, object]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise place.error(value, type_)
    return value


def _list(
    value: object, place: _Place, type_: str, read: Callable[[object, _Place], T]
) -> tuple[T, ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise place.error(value, type_)
    return tuple(read(item, place) for item in value)


def _messages(value: object, place: _Place) -> dict[str, str]:
    messages = _map(value, place, "v1.FailedNodesMap")
    return {name: _text(message, place) for name, message in messages.items()}


def _text(value: object, place: _Place) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise place.error(value, "string")
    # An escape can be half of a pair, which cannot be written.
    return _SURROGATE.sub("\ufffd", value)


def _int64(value: object, place: _Place) -> int:
    match value:
        case None:
            return 0
        case bool():
            pass
        case int() if is_int64(value):
            return value
        case int() | _Decimal():
            written = value.text if isinstance(value, _Decimal) else value
            into = f"struct field {place.type}{place.path}"
            raise WireError(f"json: cannot unmarshal number {written} into Go {into} of type int64")
    raise place.error(value, "int64")
