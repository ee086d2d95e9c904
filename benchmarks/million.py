"""Measures a million nodes and a million pods with the production loop.

`python -m benchmarks.million PODS` runs one row in this process and prints JSON. The pods:

equal      all of one template
templates  drawn at random from 1,000 pods of shape B of `diverse`, without anti-affinity
samples    the same, and each search ends at 1 % of the nodes (percentageOfNodesToScore)

Queue, cache, event handlers and loop are those of production; the binding is simulated, and its
watch event comes later. Nodes are those of `diverse`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from itertools import islice, repeat
from random import Random
from time import process_time
from typing import Final

import msgspec

from benchmarks import diverse
from benchmarks.loop import play
from benchmarks.objects import decoded
from benchmarks.templates import Json
from benchmarks.throughput import peak_rss_mib
from kubesched.api.core import Pod
from kubesched.simulator.virtual_loop import run

NODES: Final = 1_000_000
PODS: Final = 1_000_000
EQUAL: Final = "equal"
TEMPLATES: Final = "templates"
SAMPLES: Final = "samples"
KINDS: Final = (EQUAL, TEMPLATES, SAMPLES)
_TEMPLATES: Final = 1000


class Million(msgspec.Struct, frozen=True):
    """One run; CPU time of one process.

    Attributes:
        nodes: Number of nodes.
        pods: Number of pods.
        bound: Number of confirmed bindings.
        decode_seconds: To decode the nodes and pods.
        load_seconds: To fill the cache with the nodes.
        cpu_seconds: From the first pod to the last confirmation.
        decoded_mib: Peak memory when all objects were decoded.
        rss_mib: Peak memory of the process.
    """

    nodes: int
    pods: int
    bound: int
    decode_seconds: float
    load_seconds: float
    cpu_seconds: float
    decoded_mib: int
    rss_mib: int


def pods(kind: str, random: Random) -> Iterator[Json]:
    """Yield pods of a kind without end."""
    if kind == EQUAL:
        return diverse.numbered(repeat(_template(next(diverse.pods("A", random)))))
    drawn = [_template(pod) for pod in islice(diverse.pods("B", random), _TEMPLATES)]
    return diverse.numbered(random.choice(drawn) for _ in iter(int, 1))


def _template(pod: Json) -> Json:
    """Return the pod without a name and without anti-affinity."""
    metadata = {key: pod["metadata"][key] for key in ("namespace", "labels")}
    affinity = {**pod["spec"].get("affinity", {})}
    affinity.pop("podAntiAffinity", None)
    return {"metadata": metadata, "spec": {**pod["spec"], "affinity": affinity}}


def measure(kind: str, node_count: int, pod_count: int, seed: int = 0) -> Million:
    """Schedule the pods."""
    began = process_time()
    nodes = list(diverse.nodes(node_count))
    made = islice(pods(kind, Random(seed)), pod_count)
    came = [pod for pod in map(decoded, made) if isinstance(pod, Pod)]
    decode_seconds, decoded_mib = process_time() - began, peak_rss_mib()
    found = run(play(nodes, came, percentage=1 if kind == SAMPLES else 0))
    return Million(
        nodes=found.nodes,
        pods=found.pods,
        bound=found.bound,
        decode_seconds=round(decode_seconds, 1),
        load_seconds=found.load_seconds,
        cpu_seconds=found.cpu_seconds,
        decoded_mib=decoded_mib,
        rss_mib=peak_rss_mib(),
    )


def main() -> None:
    """Measure one kind of pods and print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--nodes", type=int, default=NODES)
    parser.add_argument("--pods", type=int, default=PODS)
    options = parser.parse_args()
    found = measure(options.kind, options.nodes, options.pods)
    sys.stdout.write(msgspec.json.encode(found).decode() + "\n")


if __name__ == "__main__":
    main()
