"""Finds the pods and nodes that a user names: a pod by its own name, or by its workload.

Names may have their kind before them, as `kubectl get -o name` prints them.

Rejects:  unknown and ambiguous names; suggests similar ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final, TypeAlias

from kubesched.api.core import Pod
from kubesched.api.meta import controller_of
from kubesched.api.well_known import TEMPLATE_HASH
from kubesched.explain.sentences import grouped_by, names, there_are
from kubesched.inputs.errors import NEAR_MAX, UserError, did_you_mean, near_names

_OWNER_KINDS: Final = {
    **dict.fromkeys(("deploy", "deployment", "deployments"), "Deployment"),
    **dict.fromkeys(("rs", "replicaset", "replicasets"), "ReplicaSet"),
    **dict.fromkeys(("rc", "replicationcontroller"), "ReplicationController"),
    **dict.fromkeys(("sts", "statefulset", "statefulsets"), "StatefulSet"),
    **dict.fromkeys(("ds", "daemonset", "daemonsets"), "DaemonSet"),
    **dict.fromkeys(("job", "jobs"), "Job"),
}
"""The kinds of workloads by the names that kubectl takes."""
_OTHER_KINDS: Final = {
    **dict.fromkeys(("no", "node", "nodes"), "Node"),
    **dict.fromkeys(("svc", "service", "services"), "Service"),
    **dict.fromkeys(("cj", "cronjob", "cronjobs"), "CronJob"),
}
"""Kinds that no pod names as its controller."""
_POD_KINDS: Final = ("pod", "pods", "po")
_KINDS: Final = frozenset((*_OWNER_KINDS, *_OTHER_KINDS, *_POD_KINDS))

Workload: TypeAlias = tuple[str, str]
"""Kind and name."""


def find_pod(
    text: str,
    pods: Sequence[Pod],
    preferred: str = "",
    *,
    only: bool = False,
    stored: Iterable[Workload] = (),
) -> tuple[Pod, tuple[str, ...]]:
    """Return the named pod, and a note if it is one of several.

    The text is `NAME`, `NAMESPACE/NAME`, `pod/NAME`, or a workload such as `deploy/NAME`. If
    several namespaces have such a pod, the preferred one counts; with `only`, a text without a
    namespace is looked up in that one only. `stored` are workloads that an error may suggest
    besides those that have pods. Raises UserError if there is none, or there are several.
    """
    prefix, name = _split(text)
    if prefix in _OWNER_KINDS:
        workload = _OWNER_KINDS[prefix], name
        chosen = _pod_of_workload(text, workload, pods, preferred, only=only)
        if chosen is None:
            hint = _near_workloads(workload, pods, stored)
            raise UserError(f"{text}: no pod belongs to a {workload[0]} of that name; {hint}")
        return chosen
    namespace = prefix
    asked = text if prefix in _POD_KINDS else f"pod {text}"
    if prefix in ("", *_POD_KINDS):
        namespace = preferred if only else ""
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
        raise UserError(f"{asked}: there are {len(found)} of that name; write one of {listed}")
    if namespace in _OTHER_KINDS and all(namespace != pod.metadata.namespace for pod in pods):
        other = _OTHER_KINDS[namespace], name
        raise UserError(f"{text}: {_other_object(other, pods, stored)}")
    hint = _near_pods(name, namespace, pods, stored)
    raise UserError(f"{asked}: there is no such pod; {hint}")


def pod_named(text: str, namespace: str) -> tuple[str, str] | None:
    """Return namespace and name of a pod that may be gone; None if the text names no pod.

    The text is as for `find_pod`. Names without a namespace get the given one; "" is `default`.
    """
    prefix, name = _split(text)
    if prefix in _OWNER_KINDS or prefix in _OTHER_KINDS:
        return None
    return (namespace or "default" if prefix in ("", *_POD_KINDS) else prefix), name


def workload_named(text: str) -> Workload | None:
    """Return the workload that a text such as `deploy/NAME` names; None if it names none."""
    prefix, name = _split(text)
    return (_OWNER_KINDS[prefix], name) if name and prefix in _OWNER_KINDS else None


def _split(text: str) -> tuple[str, str]:
    """Return the namespace or kind before a name, and the name; kubectl takes kinds in any case."""
    prefix, _, name = text.rpartition("/")
    kind = prefix.partition(".")[0].lower()
    return (kind if kind in _KINDS else prefix), name


def _other_object(other: Workload, pods: Sequence[Pod], stored: Iterable[Workload]) -> str:
    """Return what to name instead of an object of another kind, which may not exist, and why."""
    kind, name = other
    if kind == "Node":
        return (
            "a pod is asked for, not a Node; `kubesched top` shows what nodes hold, and "
            f"`kubesched drain {name}` where its pods would go"
        )
    rule = (
        "the pods of a CronJob belong to Jobs" if kind == "CronJob" else f"a {kind} needs no node"
    )
    return f"{rule}; name a pod or its workload; {_near_workloads(other, pods, stored)}"


def _pod_of_workload(
    text: str, workload: Workload, pods: Sequence[Pod], preferred: str, *, only: bool
) -> tuple[Pod, tuple[str, ...]] | None:
    """Return the first pending pod of a workload, else its first pod; None if it has none."""
    found = [pod for pod in pods if belongs_to(pod, *workload)]
    within = [pod for pod in found if pod.metadata.namespace == preferred]
    if only and found and not within:
        elsewhere = names(sorted({pod.metadata.namespace for pod in found}))
        raise UserError(f"{text}: it is not in {preferred}, but in {elsewhere}")
    found = within or found
    namespaces = sorted({pod.metadata.namespace for pod in found})
    if not found:
        return None
    if len(namespaces) > 1:
        raise UserError(f"{text}: it is in {' and in '.join(namespaces)}; add -n NAMESPACE")
    pending = [pod for pod in found if not pod.spec.node_name]
    chosen = min(pending or found, key=lambda pod: pod.metadata.name)
    if len(found) == 1:
        return chosen, ()
    note = f"{len(pending)} of {len(found)} pods of {text} have no node; this is one."
    if not pending:
        note = f"All {len(found)} pods of {text} have a node; this is one."
    return chosen, (note,)


def belongs_to(pod: Pod, kind: str, name: str) -> bool:
    """Whether a pod belongs to a workload; the namespace is not compared."""
    return (kind, name) in workloads_of(pod)


def workloads_of(pod: Pod) -> Iterator[Workload]:
    """Yield the workloads that a pod belongs to, its controller first; kind and name of each."""
    owner = controller_of(pod.metadata)
    if owner is None:
        return
    yield owner.kind, owner.name
    # The ReplicaSet of a Deployment is named after it and the hash of its template.
    suffix = f"-{pod.metadata.labels.get(TEMPLATE_HASH)}"
    if owner.kind == "ReplicaSet" and owner.name.endswith(suffix):
        yield "Deployment", owner.name.removesuffix(suffix)


def _near_workloads(wanted: Workload, pods: Sequence[Pod], stored: Iterable[Workload]) -> str:
    """Return a hint for a workload without pods: others of its name, or similar ones."""
    kind, name = wanted
    found = dict.fromkeys(workload for pod in pods for workload in workloads_of(pod))
    found |= dict.fromkeys(stored)
    near = [other for other in found if other[1] == name]
    similar = near_names(name, [other for of, other in found if of == kind])
    near += [(kind, other) for other in similar]
    of_kind = [each for each in found if each[0] == kind]
    listed = [f"{of.lower()}/{other}" for of, other in near or of_kind or found]
    return f"did you mean {' or '.join(listed)}?" if near else there_are("workload", listed)


def _near_pods(name: str, namespace: str, pods: Sequence[Pod], stored: Iterable[Workload]) -> str:
    """Return a hint for a pod that does not exist; a namespace of "" is any."""
    exact = {pod.metadata.key: None for pod in pods if pod.metadata.name == name}
    workloads = chain((one for pod in pods for one in workloads_of(pod)), stored)
    exact |= {f"{kind.lower()}/{name}": None for kind, owner in workloads if owner == name}
    if exact:
        return f"did you mean {' or '.join([*exact][:NEAR_MAX])}?"
    within = [pod for pod in pods if not namespace or pod.metadata.namespace == namespace]
    if pods and not within:
        namespaces = sorted({pod.metadata.namespace for pod in pods})
        others = f"no pods in namespace {namespace}, but in {names(namespaces)}"
        return _similar_pods(name, pods) or f"there are {others}"
    waiting = [pod for pod in within if not pod.spec.node_name]
    listed = [pod.metadata.key for pod in waiting or within]
    return _similar_pods(name, within) or _similar_pods(name, pods) or there_are("pod", listed)


def _similar_pods(name: str, pods: Sequence[Pod]) -> str:
    by_name = grouped_by(pods, lambda pod: pod.metadata.name)
    near = [pod.metadata.key for found in near_names(name, by_name) for pod in by_name[found]]
    return f"did you mean {' or '.join(near[:NEAR_MAX])}?" if near else ""


def find_nodes(wanted: Iterable[str], existing: Sequence[str], flag: str = "") -> tuple[str, ...]:
    """Return the names of nodes, each once; raises UserError with a line for each that is missing.

    `flag` is the option that names them, as `--node `.
    """
    found = tuple(dict.fromkeys(map(node_name, wanted)))
    known = frozenset(existing)
    missing = [name for name in found if name not in known]
    if missing:
        raise UserError(*(f"{flag}{no_such('node', name, existing)}" for name in missing))
    return found


def no_such(noun: str, name: str, existing: Sequence[str]) -> str:
    """Return the message about a name that nothing has, with similar names or existing ones."""
    hint = did_you_mean(name, existing, there_are(noun, existing))
    return f"{name}: there is no such {noun}; {hint}"


def node_name(text: str) -> str:
    """Return the name of a node that may be written as `node/NAME`."""
    kind, name = _split(text)
    return name if _OTHER_KINDS.get(kind) == "Node" else text
