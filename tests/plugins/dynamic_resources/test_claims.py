"""The pods for which a claim's change calls the hint, compared with calling it for all."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kubesched.api.core import Pod, PodResourceClaim, PodResourceClaimStatus
from kubesched.api.meta import OwnerReference
from kubesched.api.resource import ResourceClaim
from kubesched.framework.cluster_event import RESOURCE_CLAIM, Action, ClusterEvent
from kubesched.framework.status import Status
from kubesched.plugins.dynamic_resources.claims import BY_CLAIM, after_claim_change
from kubesched.queue.gates import ProfileRules
from kubesched.queue.hinting import ask_hint
from kubesched.queue.moves import ClusterChange, QueuePlace
from kubesched.queue.registrations import Registration, registrations_of
from kubesched.queue.scheduling_queue import SchedulingQueue
from kubesched.snapshot.pod_info import PodInfo
from kubesched.testing.builders import make_pod
from tests.plugins.dynamic_resources.cluster import Cluster, user_of
from tests.plugins.dynamic_resources.objects import allocation_of, claim, request

NAMES = ("c1", "c2", "c3")
entries = st.lists(
    st.sampled_from(NAMES).map(lambda name: PodResourceClaim(name=name, resource_claim_name=name))
    | st.sampled_from("ab").map(
        lambda name: PodResourceClaim(name=name, resource_claim_template_name="t")
    )
    | st.just(PodResourceClaim(name="neither")),
    max_size=3,
)
statuses = st.lists(
    st.builds(
        PodResourceClaimStatus,
        name=st.sampled_from("ab"),
        resource_claim_name=st.sampled_from([*NAMES, None]),
    ),
    max_size=2,
)
claims = st.builds(
    lambda name, is_allocated, user, owner, deleted: claim(
        request(),
        name=name,
        allocation=allocation_of("d") if is_allocated else None,
        reserved_for=user,
        owner_references=owner,
        deletion_timestamp=deleted,
    ),
    st.sampled_from(NAMES),
    st.booleans(),
    st.sampled_from([(), ("uid-p",)]),
    st.sampled_from([(), (OwnerReference(uid="uid-p", controller=True),)]),
    st.sampled_from([None, None, None, "2026-06-01T12:00:00Z"]),
)


@given(entries, statuses, st.lists(claims, max_size=3), claims, st.none() | claims)
def test_only_pods_that_name_a_claim_are_queued_by_its_changes(
    uses: list[PodResourceClaim],
    generated: list[PodResourceClaimStatus],
    known: list[ResourceClaim],
    new: ResourceClaim,
    before: ResourceClaim | None,
) -> None:
    """A deallocated claim queues any pod."""
    pod = make_pod("p", uid="uid-p")
    spec = replace(pod.spec, resource_claims=tuple(uses))
    status = replace(pod.status, resource_claim_statuses=tuple(generated))
    pod = replace(pod, spec=spec, status=status)
    there = {one.metadata.name: one for one in known} | {new.metadata.name: new}
    old = None if before is None else replace(before, metadata=new.metadata)
    if after_claim_change(pod, old, new, lambda _, name: there.get(name)):
        names = BY_CLAIM.of_change(old, new)
        assert names is None or set(names) & set(BY_CLAIM.of_pod(pod))


def test_a_new_claim_is_weighed_for_the_pods_that_wait_for_it() -> None:
    """No other pod behind the gate is asked about."""
    cluster, asked = Cluster(), list[str]()
    plugin = cluster.plugin

    def pre_enqueue(pod: PodInfo) -> Status:
        return plugin.pre_enqueue(pod, cluster.snapshot)

    def ask(registration: Registration, change: ClusterChange, pod: Pod) -> bool:
        asked.append(pod.metadata.name)
        return ask_hint(registration, change, pod)

    gates = {plugin.name: pre_enqueue}
    rules = {"default-scheduler": ProfileRules(gates, registrations=registrations_of([plugin]))}
    queue = SchedulingQueue(lambda queued: (queued.timestamp,), rules, ask=ask)
    for name in NAMES:
        assert not queue.add(user_of(name, name=f"of-{name}"), 0.0)
    news = claim(request(), name="c2")
    cluster.store.put(news)
    assert queue.move_all(ClusterEvent(RESOURCE_CLAIM, Action.ADD), None, news, 1.0)
    assert ["of-c2"] == asked
    assert ["of-c2"] == [queued.pod_info.name for queued in queue.pods(QueuePlace.ACTIVE)]
