"""How far answers are compared with those of a real server (docs/decisions/0014).

Word for word for what scheduling writes and what is printed of it; for other kinds, a refusal of an
object is the same if its status code is, and if the same fields are refused for the same reasons.
Everything that is not compared is listed here.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

WORD_FOR_WORD: Final = frozenset(
    ("Binding", "Eviction", "Lease", "Node", "Pod", "PodDisruptionBudget", "PriorityClass")
)
"""Kinds whose messages are those of a real server."""

NOT_CHECKED: Final[dict[str, tuple[str, ...]]] = {
    # What Windows alone has.
    "Pod": ("spec.securityContext.windowsOptions", "spec.hostNetwork"),
    # Volumes that clusters no longer have.
    "PersistentVolume": (
        *("spec.fc", "spec.flocker", "spec.scaleIO"),
        *("spec.csi.controllerExpandSecretRef", "spec.csi.controllerPublishSecretRef"),
        *("spec.csi.nodeExpandSecretRef", "spec.csi.nodePublishSecretRef"),
        "spec.csi.nodeStageSecretRef",
    ),
    # What depends on several fields of kinds that scheduling does not read.
    "CSIDriver": (
        "spec.attachedRequired",
        "spec.nodeAllocatableUpdatePeriodSeconds",
        "spec.serviceAccountTokenInSecrets",
        "spec.tokenRequests",
        "spec.volumeLifecycleModes",
    ),
    "CSINode": ("spec.drivers",),
    **dict.fromkeys(
        ("DaemonSet", "ReplicationController"),
        ("status.",),
    ),
    "Deployment": ("spec.progressDeadlineSeconds", "status."),
    "ReplicaSet": ("spec.template.spec.activeDeadlineSeconds", "status."),
    "StatefulSet": ("spec.updateStrategy", "status."),
    "EndpointSlice": ("endpoints", "ports"),
    "Endpoints": ("subsets[0]",),
    "RuntimeClass": ("scheduling.tolerations",),
    "Service": (
        "spec.clusterIPs",
        "spec.externalTrafficPolicy",
        "spec.ipFamilies",
        "spec.ports",
        "spec.trafficDistribution",
    ),
    "StorageClass": ("allowedTopologies",),
}
"""Fields whose recorded errors need not be found, by kind. Nothing else may be missing."""

_OF_KUBELETS: Final = re.compile(
    r"spec\.(?:\w+\[\d+\]\.)?securityContext\.(?:seccomp|appArmor)Profile|spec\.dnsConfig\.options"
)
"""Security contexts and resolvers: rules between several of their fields are not checked."""

_VALUE: Final = re.compile(r"(?:Duplicate|Invalid|Unsupported) value: (?=[\[{])")
_DIFFERENCE: Final = re.compile(r"\n@@.*?(?=$|, [a-z]+[.\[]|\]$)|\n+(?=$|\])", re.DOTALL)


_GO_TYPE: Final = re.compile(
    r"(cannot unmarshal [^\n]*? into Go (?:struct field [\w.]+|value) of type) [^\s\",]+(?: \{\})?"
)
_FOUND: Final = re.compile(
    r"(expected (?:string|numeric \(int or float\)|boolean|list|map|any scalar)), got [^\n]*"
)
_TIME: Final = re.compile(r'(parsing time \\?"[^"]*").*')
_GO_MAP: Final = re.compile(r"(?: in map)?: map\[.*?\](?= |$)")


def wording(message: str) -> str:
    """Return a message without Go's types, values of its structs, and their differences."""
    message = _FOUND.sub(r"\1", _GO_TYPE.sub(r"\1", message))
    message = _TIME.sub(r"\1", message)
    message = _GO_MAP.sub("", _DIFFERENCE.sub("", message))
    at = 0
    while (match := _VALUE.search(message, at)) is not None:
        at = match.end()
        value, end = json.JSONDecoder().raw_decode(message, at)
        if isinstance(value, dict) or any(isinstance(one, dict) for one in value):
            message = f"{message[:at]}<object>{message[end:]}"
    return message


def is_not_checked(kind: str, field: str) -> bool:
    """Whether errors of a field are not compared."""
    if kind == "Pod" and _OF_KUBELETS.match(field):
        return True
    return field.startswith(NOT_CHECKED.get(kind, ("no field",)))


def compared(answer: dict[str, Any]) -> dict[str, Any]:
    """Return the compared part of an answer: all of it, unless it refuses an object."""
    if answer.get("kind") != "Status" or not answer.get("message"):
        return answer
    if answer.get("reason") != "Invalid":
        return {**answer, "message": wording(answer["message"])}
    details = answer.get("details") or {}
    causes = details.get("causes") or []
    kind = str(answer["message"]).partition(" ")[0].partition(".")[0]
    # What a patch would have made of an object is not shown, as Go prints it.
    is_patch = any(one.get("field") == "patch" for one in causes)
    if not is_patch and (kind in WORD_FOR_WORD or not causes or not details.get("kind")):
        # A real server checks some things several times, and reports them as often.
        causes = [{**one, "message": wording(one["message"])} for one in causes]
        causes = [one for at, one in enumerate(causes) if one not in causes[:at]]
        message = wording(answer["message"])
    else:
        told = sorted({(one.get("reason", ""), one.get("field", "")) for one in causes})
        causes = [
            {"reason": reason, "field": field}
            for reason, field in told
            if not is_not_checked(kind, field)
        ]
        message = ""
    return {**answer, "message": message, "details": {**details, "causes": causes}}
