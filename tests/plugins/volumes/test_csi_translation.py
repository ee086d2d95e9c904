"""In-tree volumes as CSI volumes: drivers, handles, topology."""

from typing import Any

import msgspec
import pytest

from kubesched.api.core import NodeSelector, Volume
from kubesched.plugins.volumes.csi_translation import (
    TranslationError,
    is_migrated_on,
    plugin_named,
    plugin_of_inline_volume,
    plugin_of_volume,
    translate_inline_volume,
    translate_volume,
)
from tests.plugins.volume_objects import (
    BETA_REGION,
    BETA_ZONE,
    REGION,
    ZONE,
    make_csi_node,
    make_volume,
    terms,
)

GCE = "pd.csi.storage.gke.io"
EBS = "ebs.csi.aws.com"
Json = dict[str, Any]


def gce(**labels: str) -> Json:
    """A Google disk with labels."""
    return {"gcePersistentDisk": {"pdName": "d"}, "labels": labels}


@pytest.mark.parametrize(
    ("source", "driver", "handle"),
    [
        pytest.param(
            {"gcePersistentDisk": {"pdName": "d"}},
            GCE,
            "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d",
            id="gce",
        ),
        pytest.param({"awsElasticBlockStore": {"volumeID": "vol-1"}}, EBS, "vol-1", id="ebs"),
        pytest.param({"awsElasticBlockStore": {"volumeID": "any"}}, EBS, "any", id="ebs, bare"),
        pytest.param(
            {"awsElasticBlockStore": {"volumeID": "aws://us-east-1a/vol-1"}},
            EBS,
            "vol-1",
            id="ebs with zone",
        ),
        pytest.param(
            {"awsElasticBlockStore": {"volumeID": "aws:///vol-1/"}}, EBS, "vol-1", id="ebs, no zone"
        ),
        pytest.param({"cinder": {"volumeID": "c"}}, "cinder.csi.openstack.org", "c", id="cinder"),
        pytest.param(
            {"azureDisk": {"diskName": "n", "diskURI": "/u", "kind": "managed"}},
            "disk.csi.azure.com",
            "/u",
            id="azure disk",
        ),
        pytest.param(
            {"azureFile": {"secretName": "azure-storage-account-acc-secret", "shareName": "s"}},
            "file.csi.azure.com",
            "#acc#s#vol#ns",
            id="azure file",
        ),
        pytest.param(
            {"azureFile": {"secretName": "plain", "shareName": "s"}},
            "file.csi.azure.com",
            "#plain#s#vol#ns",
            id="azure file, other secret",
        ),
        pytest.param(
            {"vsphereVolume": {"volumePath": "[d] p", "storagePolicyName": "x"}},
            "csi.vsphere.vmware.com",
            "[d] p",
            id="vsphere",
        ),
        pytest.param({"portworxVolume": {"volumeID": "p"}}, "pxd.portworx.com", "p", id="portworx"),
    ],
)
def test_inline_volume(source: Json, driver: str, handle: str) -> None:
    """A pod's in-tree volume has a driver and a handle."""
    volume = msgspec.convert({"name": "vol", **source}, Volume)
    assert plugin_of_inline_volume(volume) is not None
    translated = translate_inline_volume(volume, "ns")
    assert (driver, handle, None) == (
        translated.driver,
        translated.handle,
        translated.node_affinity,
    )


@pytest.mark.parametrize(
    ("fields", "handle"),
    [
        pytest.param(gce(), "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d", id="gce, no zone"),
        pytest.param(gce(**{ZONE: "z"}), "projects/UNSPECIFIED/zones/z/disks/d", id="gce, zone"),
        pytest.param(
            gce(**{BETA_ZONE: "b", ZONE: "z"}),
            "projects/UNSPECIFIED/zones/b/disks/d",
            id="gce, beta zone goes first",
        ),
        pytest.param(
            gce(**{BETA_ZONE: "", ZONE: "z"}),
            "projects/UNSPECIFIED/zones/z/disks/d",
            id="gce, unless it is empty",
        ),
        pytest.param(
            gce(**{ZONE: "us-east1-b__us-east1-c"}),
            "projects/UNSPECIFIED/regions/us-east1/disks/d",
            id="gce, region",
        ),
        pytest.param(
            {
                "azureFile": {"secretName": "s", "shareName": "sh", "secretNamespace": "sn"},
                "annotations": {"kubernetes.io/azure-file-resource-group": "rg"},
            },
            "rg#s#sh#v#sn",
            id="azure file",
        ),
        pytest.param(
            {
                "azureFile": {"secretName": "s", "shareName": "sh"},
                "claim": {"namespace": "cn", "name": "c"},
            },
            "#s#sh#v#cn",
            id="azure file, namespace of the claim",
        ),
    ],
)
def test_volume(fields: Json, handle: str) -> None:
    """A persistent volume's handle may depend on its metadata."""
    assert handle == translate_volume(make_volume("v", **fields)).handle


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        pytest.param(
            {"awsElasticBlockStore": {"volumeID": "aws://vol-1"}},
            "failed to translate Kubernetes ID to EBS Volume ID "
            "Invalid format for AWS volume (aws://vol-1)",
            id="ebs",
        ),
        pytest.param(
            {"azureDisk": {"kind": "Dedicated"}},
            "kind(Dedicated) is not supported in csi migration",
            id="azure disk",
        ),
        pytest.param(
            {"azureFile": {"secretName": "s"}},
            "could not find a secret namespace in PersistentVolumeSource or ClaimRef",
            id="azure file",
        ),
        pytest.param(
            gce(**{ZONE: "a__us-east1-c"}),
            "failed to get region from zones: zone in unexpected format, "
            "expected: {locale}-{region}-{zone}, got: a",
            id="gce, odd zone",
        ),
        pytest.param(
            gce(**{ZONE: "us-east1-b__us-west1-c"}),
            "failed to get region from zones: multiple or no regions gotten from zones, "
            "got: map[us-east1:{} us-west1:{}]",
            id="gce, two regions",
        ),
        pytest.param(
            {"hostPath": {"path": "/"}},
            'could not find in-tree plugin translation logic for "v"',
            id="not in-tree",
        ),
    ],
)
def test_no_counterpart(fields: Json, error: str) -> None:
    """A volume without a CSI counterpart raises an error."""
    with pytest.raises(TranslationError) as raised:
        translate_volume(make_volume("v", **fields))
    assert error == str(raised.value)


DRIVER_ZONE = "topology.ebs.csi.aws.com/zone"


@pytest.mark.parametrize(
    ("affinity", "labels", "expected"),
    [
        pytest.param(None, {}, None, id="none"),
        pytest.param(terms({ZONE: ["a"]}), {}, terms({DRIVER_ZONE: ["a"]}), id="zone"),
        pytest.param(terms({BETA_ZONE: ["a"]}), {}, terms({DRIVER_ZONE: ["a"]}), id="beta zone"),
        pytest.param(
            terms({BETA_ZONE: ["a"], BETA_REGION: ["r"]}),
            {},
            terms({DRIVER_ZONE: ["a"], REGION: ["r"]}),
            id="a beta region becomes current",
        ),
        pytest.param(
            terms({ZONE: ["a"], BETA_REGION: ["r"]}),
            {},
            terms({DRIVER_ZONE: ["a"], BETA_REGION: ["r"]}),
            id="unless the zone is current",
        ),
        pytest.param(None, {ZONE: "b__a__ "}, terms({DRIVER_ZONE: ["a", "b"]}), id="from labels"),
        pytest.param(
            terms({"x": ["y"]}, {"z": ["w"]}),
            {ZONE: "a"},
            terms({"x": ["y"], DRIVER_ZONE: ["a"]}, {"z": ["w"], DRIVER_ZONE: ["a"]}),
            id="to every term",
        ),
        pytest.param(None, {ZONE: "__"}, None, id="empty labels add nothing"),
        pytest.param(
            terms({ZONE: ["a"]}), {ZONE: "b"}, terms({DRIVER_ZONE: ["a"]}), id="affinity goes first"
        ),
    ],
)
def test_topology(affinity: Json | None, labels: dict[str, str], expected: Json | None) -> None:
    """The driver's key replaces the zone label."""
    more: Json = {} if affinity is None else {"nodeAffinity": {"required": affinity}}
    source: Json = {"awsElasticBlockStore": {"volumeID": "vol-1"}}
    found = translate_volume(make_volume("v", labels=labels, **source, **more)).node_affinity
    want = None if expected is None else msgspec.convert(expected, NodeSelector)
    assert want == found


def test_vsphere_topology() -> None:
    """A vSphere volume has keys for zone and region; a label is one value."""
    source: Json = {"vsphereVolume": {"volumePath": "p"}}
    affinity: Json = {"nodeAffinity": {"required": terms({ZONE: ["a"]})}}
    volume = make_volume("v", labels={REGION: "r__s", ZONE: "x"}, **source, **affinity)
    zone, region = "topology.csi.vmware.com/zone", "topology.csi.vmware.com/region"
    expected = msgspec.convert(terms({zone: ["a"], region: ["r__s"]}), NodeSelector)
    assert expected == translate_volume(volume).node_affinity


def test_plugins() -> None:
    """Seven in-tree plugins have drivers; five count as migrated."""
    names = ["gce-pd", "aws-ebs", "cinder", "azure-disk", "azure-file", "vsphere-volume"]
    plugins = [plugin_named(f"kubernetes.io/{name}") for name in [*names, "portworx-volume"]]
    migrated = [plugin is not None and plugin.is_migrated for plugin in plugins]
    assert [True, True, True, True, False, False, True] == migrated
    assert plugin_named("csi.example.com") is None
    assert plugin_of_volume(make_volume("v", hostPath={"path": "/"})) is None
    assert plugin_of_inline_volume(Volume(name="v")) is None


def test_is_migrated_on() -> None:
    """A node reports the plugins that are migrated there."""
    plugin = plugin_named("kubernetes.io/aws-ebs")
    assert plugin is not None
    migrated = make_csi_node("n", migrated=["kubernetes.io/gce-pd", "kubernetes.io/aws-ebs"])
    assert is_migrated_on(plugin, migrated)
    assert not is_migrated_on(plugin, make_csi_node("n"))
    assert not is_migrated_on(plugin, None)
