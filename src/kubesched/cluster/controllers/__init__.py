"""Controllers runs the controllers of a cluster in one process.

They create pods for workloads, and delete objects that have no owner or node.

Upstream: cmd/kube-controller-manager (v1.36)
Differs:  there are no endpoints, autoscalers, quotas or attachments; controllers
          record no events.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from kubesched.cluster.controllers.access import ClusterRoleAggregation, NamespaceDefaults
from kubesched.cluster.controllers.claims import (
    PodClaimController,
    ResourceClaimController,
    VolumeController,
)
from kubesched.cluster.controllers.controller import OwnedPods
from kubesched.cluster.controllers.daemon_sets import DaemonSetController
from kubesched.cluster.controllers.deployments import DeploymentController
from kubesched.cluster.controllers.disruption_budgets import DisruptionBudgetController
from kubesched.cluster.controllers.garbage_collector import (
    DefinitionController,
    GarbageCollector,
    NamespaceController,
)
from kubesched.cluster.controllers.jobs import CronJobController, JobController
from kubesched.cluster.controllers.pods_on_nodes import PodCollector, PodsByNode, TaintEviction
from kubesched.cluster.controllers.replica_sets import (
    ReplicaSetController,
    ReplicationControllerController,
)
from kubesched.cluster.controllers.stateful_sets import StatefulSetController
from kubesched.cluster.server import AnyKindServer, Watching

_ACCOUNT: Final = "system:serviceaccount:kube-system:"


class Controllers(Watching):
    """The controllers of a cluster, each with the rights of its own service account."""

    def __init__(
        self, server_for: Callable[[str], AnyKindServer], root_certificate: str = ""
    ) -> None:
        """Set up.

        `server_for` returns the server for the user of that name; `root_certificate` is the
        certificate authority of the API server, as PEM.
        """

        def server(name: str) -> AnyKindServer:
            return server_for(f"{_ACCOUNT}{name}")

        pods = OwnedPods(server("controllers"))
        bound_pods = PodsByNode(server("controllers"))
        self._followed = (
            pods,
            bound_pods,
            ReplicaSetController(server("replicaset-controller"), pods),
            ReplicationControllerController(server("replication-controller"), pods),
            DeploymentController(server("deployment-controller")),
            DaemonSetController(server("daemon-set-controller"), pods),
            StatefulSetController(server("statefulset-controller"), pods),
            JobController(server("job-controller"), pods),
            CronJobController(server("cronjob-controller")),
            DisruptionBudgetController(server("disruption-controller")),
            PodClaimController(server("pod-claim-controller")),
            ResourceClaimController(server("resource-claim-controller")),
            VolumeController(server("persistent-volume-binder")),
            ClusterRoleAggregation(server("clusterrole-aggregation-controller")),
            NamespaceController(server("namespace-controller")),
            NamespaceDefaults(server("service-account-controller"), root_certificate),
            DefinitionController(server("customresourcedefinition-controller")),
            GarbageCollector(server("generic-garbage-collector")),
            PodCollector(server("pod-garbage-collector"), bound_pods),
            TaintEviction(server("taint-eviction-controller"), bound_pods),
        )


# Kinds without a controller.

IDLE_KINDS: Final[Mapping[str, str]] = {
    "apiservices.apiregistration.k8s.io": "no requests are forwarded",
    "certificatesigningrequests.certificates.k8s.io": "nothing signs certificates",
    "flowschemas.flowcontrol.apiserver.k8s.io": "no requests are held back",
    "horizontalpodautoscalers.autoscaling": "nothing scales workloads",
    "ingresses.networking.k8s.io": "nothing serves requests",
    "mutatingadmissionpolicies.admissionregistration.k8s.io": "no policy is evaluated",
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": "no webhook is called",
    "networkpolicies.networking.k8s.io": "pods have no network",
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io": "no requests are held back",
    "resourcequotas": "no quota is enforced",
    "services": "pods have no network, and services no endpoints",
    "validatingadmissionpolicies.admissionregistration.k8s.io": "no policy is evaluated",
    "validatingwebhookconfigurations.admissionregistration.k8s.io": "no webhook is called",
    "volumeattachments.storage.k8s.io": "nothing attaches volumes",
}
"""What is missing, by kind as the store names it."""
