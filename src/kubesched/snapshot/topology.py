"""Zones: the key of a node's zone, and upstream's order of nodes across zones.

Upstream: pkg/scheduler/backend/cache/node_tree.go, component-helpers/node/topology (v1.36)
Reads:    node.metadata.labels
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from kubesched.snapshot.coded import Coded


def zone_key(labels: Mapping[str, str]) -> str:
    """Return region and zone as one key; "" if the node has neither."""
    # A legacy label takes precedence even if it is empty.
    region = labels.get(
        "failure-domain.beta.kubernetes.io/region", labels.get("topology.kubernetes.io/region", "")
    )
    zone = labels.get(
        "failure-domain.beta.kubernetes.io/zone", labels.get("topology.kubernetes.io/zone", "")
    )
    return f"{region}:\x00:{zone}" if region or zone else ""


def round_robin(zones: Coded[str]) -> NDArray[np.intp]:
    """Return the rows: the first of each zone, then the second of each zone, and so on.

    Zones are in the order of their first rows.
    """
    codes = zones.codes
    _, first = np.unique(codes, return_index=True)
    seen = {int(codes[row]): place for place, row in enumerate(np.sort(first).tolist())}
    taken = [0] * len(seen)
    keys: list[tuple[int, int]] = []
    for code in codes.tolist():
        place = seen[code]
        keys.append((taken[place], place))
        taken[place] += 1
    return np.array(sorted(range(len(keys)), key=keys.__getitem__), np.intp)
