"""Kinds that no controller acts on, and what is missing for each.

Upstream: none; a cluster without such a controller is silent, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

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
