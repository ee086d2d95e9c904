"""Controllers is the small set that makes a sandbox useful, in one process.

Upstream: cmd/kube-controller-manager (v1.36)
Differs:  there are no endpoints, service accounts, cron jobs, stateful sets, replication
          controllers, autoscalers, quotas, attachments or volumes; controllers record no events.
"""

from __future__ import annotations

from typing import Final, Protocol

from kubesched.apiserver.controllers.daemon_sets import DaemonSetController
from kubesched.apiserver.controllers.deployments import DeploymentController
from kubesched.apiserver.controllers.disruption_budgets import DisruptionBudgetController
from kubesched.apiserver.controllers.garbage_collector import GarbageCollector
from kubesched.apiserver.controllers.jobs import JobController
from kubesched.apiserver.controllers.namespaces import NamespaceController
from kubesched.apiserver.controllers.owned_objects import OwnedObjects
from kubesched.apiserver.controllers.pod_collector import PodCollector
from kubesched.apiserver.controllers.replica_sets import ReplicaSetController
from kubesched.apiserver.controllers.taint_eviction import TaintEviction
from kubesched.apiserver.local_client import LocalClient
from kubesched.apiserver.registry import Registry

_ACCOUNT: Final = "system:serviceaccount:kube-system:"


class _Controller(Protocol):
    def start(self) -> None: ...
    def stop(self) -> None: ...


class Controllers:
    """All of them."""

    def __init__(self, registry: Registry) -> None:
        """Prepare; nothing happens before `start`."""

        def client(name: str) -> LocalClient:
            return LocalClient(registry, f"{_ACCOUNT}{name}")

        pods = OwnedObjects(client("controllers"), "pods")
        replica_sets = OwnedObjects(client("controllers"), "replicasets.apps")
        self._controllers: tuple[_Controller, ...] = (
            pods,
            replica_sets,
            ReplicaSetController(client("replicaset-controller"), pods),
            DeploymentController(client("deployment-controller"), replica_sets),
            DaemonSetController(client("daemon-set-controller"), pods),
            JobController(client("job-controller"), pods),
            DisruptionBudgetController(client("disruption-controller")),
            NamespaceController(client("namespace-controller")),
            GarbageCollector(client("generic-garbage-collector")),
            PodCollector(client("pod-garbage-collector")),
            TaintEviction(client("taint-eviction-controller")),
        )

    def start(self) -> None:
        """See to what is there, and follow from now on."""
        for controller in self._controllers:
            controller.start()

    def stop(self) -> None:
        """Do nothing more; stopping twice is fine."""
        for controller in self._controllers:
            controller.stop()
