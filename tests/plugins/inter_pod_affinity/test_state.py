from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched.api.core import Node, Pod
from kubesched.framework.cycle_state import CycleState
from kubesched.snapshot.pod_info import PodInfo
from tests.plugins.by_node import answers_of

from .attraction import NAMESPACES, Twin, clusters, make_plugin, pods_to_place, snapshot_of


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(clusters(), pods_to_place(), st.data())
def test_what_if_equals_counting_anew(
    cluster: tuple[list[Node], list[Pod]], pod: Pod, data: st.DataObject
) -> None:
    """Adding and removing pods in a cloned state gives the answers for the changed cluster."""
    nodes, pods = cluster
    snapshot, plugin, twin = snapshot_of(nodes, pods), make_plugin(), Twin(NAMESPACES)
    result = plugin.pre_filter(CycleState(), PodInfo(pod), snapshot)
    if result.state is None:
        return
    before = answers_of(plugin, result.state, pod, snapshot)
    node = data.draw(st.sampled_from(nodes))
    name = node.metadata.name
    one = snapshot.nodes.take(np.array([snapshot.nodes.row_of[name]]))
    what_if, present = result.state.clone(), list(pods)
    added = data.draw(st.lists(pods_to_place("new", name), max_size=3))
    here = [other for other in pods if other.spec.node_name == name]
    for other in data.draw(st.permutations(here + added)):
        change = plugin.remove_pod if other in present else plugin.add_pod
        if other in present:
            present.remove(other)
        else:
            present.append(other)
        assert change(what_if, PodInfo(pod), PodInfo(other), one).is_success
        expected = twin.filter(pod, nodes, present) or dict.fromkeys(snapshot.nodes.names, "")
        assert expected == answers_of(plugin, what_if, pod, snapshot)
    assert before == answers_of(plugin, result.state, pod, snapshot)
