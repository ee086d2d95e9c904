"""Reads the manifests whose objects are tried in a cluster.

Rejects:  manifests without a workload, and workloads that would make an answer wrong.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from kubesched.answers.workload_pods import WORKLOADS, Workload, replicas_of
from kubesched.api.batch import CronJob
from kubesched.api.codec import objects_in
from kubesched.api.core import Pod
from kubesched.api.decode import Loaded, Source, load
from kubesched.api.meta import controller_of
from kubesched.api.pod import PodSpec
from kubesched.explain.sentences import names
from kubesched.inputs.completed_input import not_read, unknown_fields
from kubesched.inputs.errors import UserError
from kubesched.inputs.loading import distinct_objects, pending_again
from kubesched.simulator.soundness import spec_errors
from kubesched.snapshot.objects import KubernetesObject


def read_manifests(
    manifests: Sequence[Path | Mapping[str, Any]], namespace: str, *, needs_workload: bool = True
) -> tuple[list[KubernetesObject], list[str]]:
    """Return the objects of manifests without those that workloads create, and warnings.

    Args:
        manifests: Files, and objects as Kubernetes' JSON.
        namespace: Of objects that name none.
        needs_workload: Whether there must be a workload.

    Raises:
        DecodeError: A manifest cannot be decoded.
        UserError: An object is wrong, or there is no workload.
    """
    skipped: Counter[str] = Counter()
    files = [one for one in manifests if isinstance(one, Path)]
    objects = [one for one in manifests if not isinstance(one, Path)]
    loaded = [*load(files, skipped, namespace=namespace)]
    loaded += decoded(objects, skipped, namespace)
    items = distinct_objects(loaded)
    errors = [error for found in loaded for error in _errors_of(found)]
    if errors:
        raise UserError(*errors)
    # Pods and ReplicaSets of a workload are created anew.
    own = [
        pending_again(item) if isinstance(item, Pod) else item
        for item in items
        if controller_of(item.metadata) is None
    ]
    if needs_workload and not any(isinstance(item, WORKLOADS) for item in own):
        where = names([str(file) for file in files] or ["manifests"])
        raise UserError(
            f"{where}: no workload in it; name files with Deployments, StatefulSets, DaemonSets, "
            "Jobs, CronJobs, ReplicaSets, ReplicationControllers or Pods"
        )
    return own, [*unknown_fields(files), *not_read(own, skipped)]


def decoded(
    objects: Iterable[Mapping[str, Any]],
    skipped: Counter[str],
    namespace: str = "default",
    name: str = "objects",
) -> Iterator[Loaded]:
    """Yield objects given as Kubernetes' JSON, as `load` does; errors call them `name[NUMBER]`."""
    for number, item in enumerate(objects):
        place = Source(f"{name}[{number}]", 0)
        yield from objects_in(dict(item), place, skipped, namespace=namespace)


def _errors_of(found: Loaded) -> Iterator[str]:
    """Yield the field errors of a workload that would make an answer wrong."""
    item = found.object
    if not isinstance(item, WORKLOADS) or isinstance(item, Pod):
        return
    name = f"{found.source}: {type(item).__name__} {item.metadata.key}"
    if replicas_of(item) < 0:
        yield f"{name}: the number of pods is {replicas_of(item)}; write 0 or more"
    path, spec = _template(item)
    if not spec.containers:
        yield f"{name}: {path}.containers: it has none; a pod needs a container"
    for error in spec_errors(spec, path):
        yield f"{name}: {error}"


def _template(item: Workload) -> tuple[str, PodSpec]:
    if isinstance(item, CronJob):
        return "spec.jobTemplate.spec.template.spec", item.spec.job_template.spec.template.spec
    template = None if isinstance(item, Pod) else item.spec.template
    return "spec.template.spec", PodSpec() if template is None else template.spec
