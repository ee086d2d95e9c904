"""Creates a pod in the cluster of $KUBECONFIG, waits until it runs, and says where."""

import base64
import json
import os
import ssl
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

PODS = "/api/v1/namespaces/default/pods"
POD = {
    "metadata": {"name": "web"},
    "spec": {
        "nodeSelector": {"topology.kubernetes.io/zone": "b"},
        "containers": [{"name": "web", "image": "web", "resources": {"requests": {"cpu": "2"}}}],
    },
}


def ask(path: str, body: object = None) -> Iterator[dict[str, Any]]:
    """Send a request, and yield what comes back line by line."""
    config = yaml.safe_load(Path(os.environ["KUBECONFIG"]).read_text(encoding="utf-8"))
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
    request = urllib.request.Request(  # noqa: S310 - the sandbox
        cluster["server"] + path,
        None if body is None else json.dumps(body).encode(),
        {"Authorization": f"Bearer {user['token']}", "Content-Type": "application/json"},
    )
    tls = ssl.create_default_context(cadata=authority)
    with urllib.request.urlopen(request, context=tls) as answer:  # noqa: S310 - the same
        for line in answer:
            yield json.loads(line)


created = next(ask(PODS, POD))
version = created["metadata"]["resourceVersion"]
for event in ask(f"{PODS}?watch=1&resourceVersion={version}"):
    pod = event["object"]
    if pod["status"]["phase"] == "Running":
        print(f"{pod['metadata']['name']} runs on {pod['spec']['nodeName']}")  # noqa: T201
        break
