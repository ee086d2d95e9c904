"""The irregular JSON names of the API, both ways."""

import msgspec
import pytest

from kubesched.api.core import Node, Pod
from kubesched.api.meta import KubeStruct
from kubesched.api.volume import PersistentVolume


@pytest.mark.parametrize(
    ("type_", "raw"),
    [
        pytest.param(Pod, {"spec": {"containers": [{"ports": [{"hostIP": "1"}]}]}}, id="hostIP"),
        pytest.param(Pod, {"status": {"podIP": "1", "qosClass": "Burstable"}}, id="podIP"),
        pytest.param(Pod, {"spec": {"volumes": [{"downwardAPI": {}}]}}, id="downwardAPI"),
        pytest.param(
            Pod, {"spec": {"volumes": [{"gcePersistentDisk": {"pdName": "d"}}]}}, id="pdName"
        ),
        pytest.param(
            Pod, {"spec": {"volumes": [{"awsElasticBlockStore": {"volumeID": "d"}}]}}, id="ebs"
        ),
        pytest.param(
            PersistentVolume, {"spec": {"azureDisk": {"diskURI": "u", "diskName": "n"}}}, id="azure"
        ),
        pytest.param(
            PersistentVolume, {"spec": {"vsphereVolume": {"storagePolicyID": "u"}}}, id="vsphere"
        ),
        pytest.param(PersistentVolume, {"spec": {"claimRef": {"apiVersion": "v1"}}}, id="ref"),
        pytest.param(Node, {"spec": {"podCIDR": "1", "providerID": "p"}}, id="node"),
        pytest.param(
            Pod,
            {
                "spec": {
                    "schedulingGroup": {"podGroupName": "g"},
                    "topologySpreadConstraints": [{"whenUnsatisfiable": "DoNotSchedule"}],
                }
            },
            id="regular",
        ),
    ],
)
def test_names_are_kubernetes_own(type_: type[KubeStruct], raw: dict[str, object]) -> None:
    """Decoding and encoding keeps every field under its name."""
    assert raw == msgspec.json.decode(msgspec.json.encode(msgspec.convert(raw, type_)))


@pytest.mark.parametrize(
    ("volume", "is_seen"),
    [
        pytest.param({"configMap": {}}, False, id="configMap"),
        pytest.param({"emptyDir": {}}, False, id="emptyDir"),
        pytest.param({"projected": {}}, False, id="projected"),
        pytest.param({"persistentVolumeClaim": {"claimName": "c"}}, True, id="claim"),
        pytest.param({"ephemeral": {}}, True, id="ephemeral"),
        pytest.param({"csi": {"driver": "d"}}, True, id="csi"),
        pytest.param({"rbd": {}}, True, id="rbd"),
        pytest.param({"image": {"reference": "r"}}, True, id="image"),
    ],
)
def test_only_some_volumes_are_seen_by_scheduling(volume: dict[str, object], is_seen: bool) -> None:
    """Volumes with configuration are not seen by scheduling."""
    pod = msgspec.convert({"spec": {"volumes": [volume]}}, Pod)
    assert is_seen == pod.spec.volumes[0].is_seen_by_scheduling
