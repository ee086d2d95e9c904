"""Writing the assumed objects of a pod's claims, and waiting until they are bound."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

import msgspec
import pytest

from kubesched.api.errors import ConflictError
from kubesched.api.meta import KubeObject
from kubesched.api.volume import PersistentVolume, PersistentVolumeClaim
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.status import SUCCESS, Status, failure
from kubesched.plugins.volume_binding import VolumeBinding, VolumeBindingArgs
from kubesched.simulator import virtual_loop
from kubesched.snapshot.objects import ObjectStore
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot
from kubesched.testing.builders import make_node, make_pod_info, make_table
from kubesched.testing.handle import FakeHandle
from tests.loops import on_virtual_time
from tests.plugins.observed import Observed
from tests.plugins.volume_objects import (
    BIND_COMPLETED,
    SELECTED_NODE,
    ZONE,
    claim_volumes,
    make_claim,
    make_class,
    make_csi_node,
    make_volume,
)

T = TypeVar("T", PersistentVolume, PersistentVolumeClaim)

BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"


def annotate(claim: PersistentVolumeClaim, **changes: object) -> PersistentVolumeClaim:
    """Replace fields of a claim's metadata."""
    return msgspec.structs.replace(
        claim, metadata=msgspec.structs.replace(claim.metadata, **changes)
    )


class FakeApi:
    """An API that stores what is written, and a controller that binds at a given poll."""

    def __init__(self, store: ObjectStore) -> None:
        self.store = store
        self.refuse: str = ""
        self.has_the_pod = True
        self.polls = 0
        self.at_poll: dict[int, Callable[[], object]] = {}
        self.written: list[KubeObject] = []

    async def update_persistent_volume(self, volume: PersistentVolume) -> PersistentVolume:
        """Store under the next version."""
        return self._store(volume)

    async def update_persistent_volume_claim(
        self, claim: PersistentVolumeClaim
    ) -> PersistentVolumeClaim:
        """Store under the next version."""
        return self._store(claim)

    def has_pod(self, namespace: str, name: str) -> bool:
        """Called once per poll; lets the controller act first."""
        self.polls += 1
        self.at_poll.get(self.polls, lambda: None)()
        return self.has_the_pod

    def _store(self, item: T) -> T:
        if item.metadata.name == self.refuse:
            raise ConflictError("the object has been modified")
        version = str(int(item.metadata.resource_version) + 1)
        metadata = msgspec.structs.replace(item.metadata, resource_version=version)
        stored = msgspec.structs.replace(item, metadata=metadata)
        self.written.append(stored)
        self.store.put(stored)
        return stored


class Scene:
    """A pod with a claim s for a volume v in zone a, and a claim d to provision."""

    def __init__(self, volume: PersistentVolume | None = None) -> None:
        self.store = ObjectStore()
        for item in (
            make_class("static", provisioner="kubernetes.io/no-provisioner"),
            make_class("wait"),
            make_claim("s", storage_class="static"),
            make_claim("d", storage_class="wait"),
            volume or make_volume("v", storage_class="static", nodes={ZONE: ["a"]}),
        ):
            self.store.put(item)
        nodes = [make_node("n0", labels={ZONE: "a"}), make_node("n1", labels={ZONE: "b"})]
        self.snapshot = Snapshot(make_table(nodes), self.store)
        self.api = FakeApi(self.store)
        handle, observed = FakeHandle(), Observed()
        handle.provide(observer=observed, volume_writer=self.api)
        self.calls = observed.calls
        self.plugin = VolumeBinding(VolumeBindingArgs(bind_timeout_seconds=60), handle)
        self.pod: PodInfo = make_pod_info(volumes=claim_volumes("s", "d"))
        self.cycle = CycleState()
        state = self.plugin.pre_filter(self.cycle, self.pod, self.snapshot).state
        assert state is not None
        self.cycle.filter_states[self.plugin.name] = state
        assert [True, False] == self.plugin.filter(
            state, self.pod, self.snapshot.nodes
        ).passed.tolist()
        assert SUCCESS == self.plugin.reserve(self.cycle, self.pod, "n0")

    def pre_bind(self) -> tuple[Status, float]:
        """Bind; return the outcome and the seconds it took."""

        async def timed() -> tuple[Status, float]:
            status = await self.plugin.pre_bind(self.cycle, self.pod, "n0")
            return status, asyncio.get_running_loop().time()

        return virtual_loop.run(timed())

    def claim(self, name: str) -> PersistentVolumeClaim:
        """Return a claim as the API has it."""
        claim = self.store.get(PersistentVolumeClaim, name, "default")
        assert claim is not None
        return claim

    def bind(self, *names: str) -> None:
        """Let the controller bind claims, d to a volume of its own."""
        for name in names:
            claim = self.claim(name)
            volume = "v" if name == "s" else "made"
            bound = msgspec.structs.replace(
                claim, spec=msgspec.structs.replace(claim.spec, volume_name=volume)
            )
            annotations = {**claim.metadata.annotations, BIND_COMPLETED: "yes"}
            self.store.put(annotate(bound, annotations=annotations))

    @property
    def assumed(self) -> tuple[int, int]:
        """How many volumes and claims are assumed."""
        binder = self.plugin._binder
        return len(binder.volumes._assumed), len(binder.claims._assumed)


def test_bind() -> None:
    """Volume and claim are written, the controller binds them, and the next poll succeeds.

    Then nothing is assumed any more.
    """
    scene = Scene()
    assert (1, 1) == scene.assumed
    scene.api.at_poll[2] = lambda: scene.bind("s")
    scene.api.at_poll[4] = lambda: make(scene)
    assert (SUCCESS, 4.0) == scene.pre_bind()
    volume, claim = scene.api.written
    assert isinstance(volume, PersistentVolume)
    ref = volume.spec.claim_ref
    assert ref is not None
    assert ("v1", "PersistentVolumeClaim", "default", "s", "uid-s") == (
        ref.api_version,
        ref.kind,
        ref.namespace,
        ref.name,
        ref.uid,
    )
    assert {BOUND_BY_CONTROLLER: "yes"} == volume.metadata.annotations
    assert {SELECTED_NODE: "n0"} == claim.metadata.annotations
    assert (0, 0) == scene.assumed


def test_volume_kept_for_the_claim() -> None:
    """A volume that a user reserved by claim name gets the claim's uid, and no annotation."""
    ref = {"namespace": "default", "name": "s"}
    scene = Scene(make_volume("v", storage_class="static", nodes={ZONE: ["a"]}, claim=ref))
    scene.api.refuse = "d"
    scene.pre_bind()
    (volume,) = scene.api.written
    assert isinstance(volume, PersistentVolume)
    assert volume.spec.claim_ref is not None
    assert "uid-s" == volume.spec.claim_ref.uid
    assert {} == volume.metadata.annotations


def test_timeout() -> None:
    """Binding fails after the timeout."""
    expected = failure("binding volumes: context deadline exceeded")
    status, seconds = Scene().pre_bind()
    assert expected == status
    assert 60.0 == pytest.approx(seconds)


def test_refused_volume() -> None:
    """If the API server rejects the volume, nothing stays assumed."""
    scene = Scene()
    scene.api.refuse = "v"
    assert (failure("the object has been modified"), 0.0) == scene.pre_bind()
    assert [("volume", "bind")] == scene.calls
    assert (0, 0) == scene.assumed
    assert [] == scene.api.written


def test_refused_claim() -> None:
    """If the API server rejects the claim, the written volume stays, even after Unreserve."""
    scene = Scene()
    scene.api.refuse = "d"
    assert (failure("the object has been modified"), 0.0) == scene.pre_bind()
    scene.plugin.unreserve(scene.cycle, scene.pod, "n0")
    volume = scene.plugin._binder.volumes.get(scene.store, "v")
    assert volume is scene.api.written[0]
    assert (0, 0) == scene.assumed


def make(scene: Scene) -> None:
    """Let the provisioner make the volume of the claim d."""
    scene.store.put(make_volume("made"))
    scene.bind("d")


def lose_claim(scene: Scene) -> None:
    """Let the claim d be deleted."""
    scene.bind("s")
    scene.store.delete(scene.claim("d"))


def bind_unseen(scene: Scene, old: PersistentVolume) -> None:
    """Let all be bound, with the volume's old state as the latest that is seen of it."""
    scene.bind("s", "d")
    scene.store.put(old)


def unsee(scene: Scene, old: PersistentVolumeClaim) -> None:
    """Let the claim s be bound, and the claim d be seen as it was."""
    scene.bind("s")
    scene.store.put(old)


def see(scene: Scene) -> None:
    """Let the claim d be seen as it was written, and its volume be made."""
    scene.store.put(scene.api.written[1])
    make(scene)


def no_reference(scene: Scene) -> None:
    """Let the controller undo the claim reference."""
    scene.store.put(make_volume("v", nodes={ZONE: ["a"]}, metadata={"resourceVersion": "3"}))


def moved(scene: Scene) -> None:
    """Let the volume be elsewhere."""
    ref = {"namespace": "default", "name": "s", "uid": "uid-s"}
    scene.store.put(
        make_volume("v", nodes={ZONE: ["b"]}, claim=ref, metadata={"resourceVersion": "3"})
    )


def made_elsewhere(scene: Scene) -> None:
    """Let the new volume be in another zone."""
    scene.bind("s", "d")
    scene.store.put(make_volume("made", nodes={ZONE: ["b"]}))


def made_and_migrated(scene: Scene) -> None:
    """Let the new volume be an in-tree disk that cannot be translated."""
    scene.bind("s", "d")
    scene.store.put(make_csi_node("n0", migrated=["kubernetes.io/aws-ebs"]))
    scene.store.put(make_volume("made", awsElasticBlockStore={"volumeID": "aws://x"}))


def unselect(scene: Scene) -> None:
    """Let the provisioner give up."""
    scene.bind("s")
    scene.store.put(annotate(scene.claim("d"), annotations={"x": "y"}))


def unannotate(scene: Scene) -> None:
    """Let the claim lose all annotations."""
    scene.bind("s")
    scene.store.put(annotate(scene.claim("d"), annotations={}))


@pytest.mark.parametrize(
    ("event", "error"),
    [
        pytest.param(
            lambda scene: setattr(scene.api, "has_the_pod", False),
            'pod does not exist any more: pod "pod" not found',
            id="pod is gone",
        ),
        pytest.param(
            lambda scene: scene.store.delete(scene.store.get(PersistentVolume, "v")),
            'failed to check binding: persistentvolumes "v" not found',
            id="volume is gone",
        ),
        pytest.param(
            lambda scene: scene.store.delete(scene.claim("s")),
            'failed to check binding: persistentvolumeclaims "default/s" not found',
            id="claim is gone",
        ),
        pytest.param(
            lose_claim,
            'failed to check provisioning pvc: persistentvolumeclaims "default/d" not found',
            id="claim to make a volume for is gone",
        ),
        pytest.param(no_reference, 'ClaimRef got reset for pv "v"', id="reference undone"),
        pytest.param(
            moved,
            'pv "v" node affinity doesn\'t match node "n0": no matching NodeSelectorTerms',
            id="volume is elsewhere",
        ),
        pytest.param(unselect, 'provisioning failed for PVC "d"', id="provisioner gave up"),
        pytest.param(
            unannotate, 'selectedNode annotation reset for PVC "d"', id="no annotations left"
        ),
        pytest.param(
            made_elsewhere,
            'pv "made" node affinity doesn\'t match node "n0": no matching NodeSelectorTerms',
            id="made elsewhere",
        ),
        pytest.param(
            made_and_migrated,
            "could not translate pv: failed to translate Kubernetes ID to EBS Volume ID "
            "Invalid format for AWS volume (aws://x)",
            id="made and not to be translated",
        ),
    ],
)
def test_binding_fails(event: Callable[[Scene], object], error: str) -> None:
    """An event that makes binding impossible ends the wait at the next poll."""
    scene = Scene()
    scene.api.at_poll[1] = lambda: event(scene)
    assert (failure(f"binding volumes: {error}"), 1.0) == scene.pre_bind()
    assert [("volume", "bind")] == scene.calls


@on_virtual_time
async def test_a_cancelled_wait() -> None:
    """Cancelling the wait counts as a failure to bind."""
    scene = Scene()
    work = asyncio.ensure_future(scene.plugin.pre_bind(scene.cycle, scene.pod, "n0"))
    await asyncio.sleep(2.5)
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)
    assert [("volume", "bind")] == scene.calls


def test_node_is_gone() -> None:
    """Without its node the pod must be scheduled again."""
    scene = Scene()
    scene.snapshot.nodes.remove_node("n0")
    error = 'binding volumes: failed to get node "n0": node "n0" not found'
    assert (failure(error), 1.0) == scene.pre_bind()


def test_old_news_are_waited_out() -> None:
    """The check waits until the informer has the written versions."""
    scene = Scene()
    old = scene.store.get(PersistentVolume, "v")
    assert old is not None
    scene.api.at_poll[1] = lambda: bind_unseen(scene, old)
    scene.api.at_poll[3] = lambda: (
        scene.store.put(scene.api.written[0]),
        scene.store.put(make_volume("made")),
    )
    assert (SUCCESS, 3.0) == scene.pre_bind()


def test_old_claims_are_waited_out() -> None:
    """A claim without the written annotation is an older version."""
    scene = Scene()
    old = scene.claim("d")
    scene.api.at_poll[1] = lambda: unsee(scene, old)
    scene.api.at_poll[3] = lambda: see(scene)
    assert (SUCCESS, 3.0) == scene.pre_bind()


def test_unreserve_after_writing() -> None:
    """A written volume stays assumed until the informer has it; a claim's node does not."""
    scene = Scene()
    status, _ = scene.pre_bind()
    assert status.error
    assert (1, 1) == scene.assumed
    scene.plugin.unreserve(scene.cycle, scene.pod, "n0")
    assert (1, 0) == scene.assumed


@on_virtual_time
async def test_no_api() -> None:
    """Without an API to write to, binding fails; with nothing to bind, it succeeds."""
    scene = Scene()
    plugin = VolumeBinding(VolumeBindingArgs(), FakeHandle())
    expected = "volumes cannot be bound: there is no API to write them to"
    assert failure(expected) == await plugin.pre_bind(scene.cycle, scene.pod, "n0")
    cycle, pod = CycleState(), make_pod_info()
    cycle.filter_states[plugin.name] = plugin.pre_filter(cycle, pod, scene.snapshot).state
    assert SUCCESS == await plugin.pre_bind(cycle, pod, "n0")
