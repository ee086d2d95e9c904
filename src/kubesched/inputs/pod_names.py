"""Finds the pods and nodes that a user names: a pod by its own name, or by its workload.

Rejects:  unknown and ambiguous names; suggests similar ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from kubesched.api.core import Pod
from kubesched.api.meta import controller_of
from kubesched.api.well_known import TEMPLATE_HASH
from kubesched.explain.sentences import count
from kubesched.inputs.errors import NEAR_MAX, UserError, did_you_mean, near_names

OWNER_KINDS: Final = {
    **dict.fromkeys(("deploy", "deployment", "deployments"), "Deployment"),
    **dict.fromkeys(("rs", "replicaset", "replicasets"), "ReplicaSet"),
    **dict.fromkeys(("rc", "replicationcontroller"), "ReplicationController"),
    **dict.fromkeys(("sts", "statefulset", "statefulsets"), "StatefulSet"),
    **dict.fromkeys(("ds", "daemonset", "daemonsets"), "DaemonSet"),
    **dict.fromkeys(("job", "jobs"), "Job"),
}
"""The kinds of workloads by the names that kubectl takes."""
_POD_KINDS: Final = ("pod", "pods", "po")


def find_pod(
    text: str, pods: Sequence[Pod], preferred: str = "", *, only: bool = False
) -> tuple[Pod, tuple[str, ...]]:
    """Return the named pod, and a note if it is one of several.

    The text is `NAME`, `NAMESPACE/NAME`, `pod/NAME`, or a workload such as `deploy/NAME`. If
    several namespaces have such a pod, the preferred one counts; with `only`, no other is looked
    at.

    Raises:
        UserError: There is none, or without a namespace there are several.
    """
    prefix, _, name = text.rpartition("/")
    if only:
        pods = [pod for pod in pods if pod.metadata.namespace == preferred]
    if prefix in OWNER_KINDS:
        return _pod_of_workload(text, OWNER_KINDS[prefix], name, pods, preferred)
    namespace = "" if prefix in _POD_KINDS else prefix
    found = [
        pod
        for pod in pods
        if pod.metadata.name == name and (not namespace or pod.metadata.namespace == namespace)
    ]
    if len(found) > 1:
        found = [pod for pod in found if pod.metadata.namespace == preferred] or found
    if len(found) == 1:
        return found[0], ()
    if found:
        listed = ", ".join(sorted(pod.metadata.key for pod in found)[:NEAR_MAX])
        raise UserError(f"pod {text}: there are {len(found)} of that name; write one of {listed}")
    raise UserError(f"pod {text}: there is no such pod{_near_pods(text, pods)}")


def pod_named(text: str, namespace: str) -> tuple[str, str] | None:
    """Return namespace and name of a pod that may be gone; None if the text names a workload.

    The text is as for `find_pod`. Names without a namespace get the given one; "" is `default`.
    """
    prefix, _, name = text.rpartition("/")
    if prefix in OWNER_KINDS:
        return None
    return (namespace or "default" if prefix in ("", *_POD_KINDS) else prefix), name


def _pod_of_workload(
    text: str, kind: str, name: str, pods: Sequence[Pod], preferred: str
) -> tuple[Pod, tuple[str, ...]]:
    """Return the first pending pod of a workload, or its first pod if none is pending."""
    found = [pod for pod in pods if belongs_to(pod, kind, name)]
    found = [pod for pod in found if pod.metadata.namespace == preferred] or found
    namespaces = sorted({pod.metadata.namespace for pod in found})
    if not found:
        raise UserError(f"{text}: no pod belongs to a {kind} of that name")
    if len(namespaces) > 1:
        raise UserError(f"{text}: it is in {' and in '.join(namespaces)}; add -n NAMESPACE")
    pending = [pod for pod in found if not pod.spec.node_name]
    chosen = min(pending or found, key=lambda pod: pod.metadata.name)
    note = f"{len(pending)} of {count(len(found), 'pod')} of {text} have no node; this is one."
    return chosen, (note,) if len(found) > 1 else ()


def belongs_to(pod: Pod, kind: str, name: str) -> bool:
    """Whether a pod belongs to a workload; the namespace is not compared."""
    owner = controller_of(pod.metadata)
    if owner is None:
        return False
    if kind == "Deployment":
        # The ReplicaSet of a Deployment is named after it and the hash of its template.
        template_hash = pod.metadata.labels.get(TEMPLATE_HASH)
        return owner.kind == "ReplicaSet" and owner.name == f"{name}-{template_hash}"
    return owner.kind == kind and owner.name == name


def _near_pods(text: str, pods: Sequence[Pod]) -> str:
    if not pods:
        return "; there are no pods at all"
    keys = [pod.metadata.key for pod in pods]
    near = near_names(text, keys)
    if not near:
        by_name = {pod.metadata.name: pod.metadata.key for pod in pods}
        name = text.rpartition("/")[2]
        near = [by_name[found] for found in near_names(name, by_name)]
    if near:
        return f"; did you mean {' or '.join(near)}?"
    waiting = [pod.metadata.key for pod in pods if not pod.spec.node_name]
    listed = ", ".join((waiting or keys)[:NEAR_MAX])
    return f"; there are {len(pods)} pods, among them {listed}"


def check_nodes(wanted: Iterable[str], existing: Sequence[str], flag: str = "") -> None:
    """Check that nodes exist; `flag` is the option that names them, such as `--node `.

    Raises:
        UserError: With one line for each that does not.
    """
    known = frozenset(existing)
    missing = [name for name in wanted if name not in known]
    if missing:
        others = f"there are {len(existing) or 'no'} nodes"
        hints = {name: did_you_mean(name, existing, others) for name in missing}
        raise UserError(
            *(f"{flag}{name}: there is no such node; {hint}" for name, hint in hints.items())
        )
