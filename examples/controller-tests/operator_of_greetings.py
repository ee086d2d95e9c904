"""An operator with kopf: a Greeting becomes a Deployment with as many replicas as it has words."""

from typing import Any

import kopf
from kubernetes.client import ApiClient, AppsV1Api

GREETINGS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "greetings.example.com"},
    "spec": {
        "group": "example.com",
        "names": {"kind": "Greeting", "plural": "greetings", "singular": "greeting"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {
                                    "words": {"type": "array", "items": {"type": "string"}}
                                },
                            },
                            "status": {
                                "type": "object",
                                "x-kubernetes-preserve-unknown-fields": True,
                            },
                        },
                    }
                },
            }
        ],
    },
}


def handlers(client: ApiClient) -> kopf.OperatorRegistry:
    """Return what the operator does, with a client of the cluster it does it in."""
    registry = kopf.OperatorRegistry()
    apps = AppsV1Api(client)

    @kopf.on.create("example.com", "v1", "greetings", registry=registry)
    def created(name: str, namespace: str, spec: kopf.Spec, **_: Any) -> dict[str, int]:
        labels = {"greeting": name}
        deployment = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name},
            "spec": {
                "replicas": len(spec["words"]),
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {"containers": [{"name": "c", "image": "i"}]},
                },
            },
        }
        kopf.adopt(deployment)
        apps.create_namespaced_deployment(namespace, deployment)
        return {"replicas": len(spec["words"])}

    @kopf.on.update("example.com", "v1", "greetings", registry=registry)
    def changed(name: str, namespace: str, spec: kopf.Spec, **_: Any) -> None:
        body = {"spec": {"replicas": len(spec["words"])}}
        apps.patch_namespaced_deployment(name, namespace, body)

    return registry
