"""In-tree volumes as CSI volumes: drivers, handles, topology."""

from typing import Any

import msgspec
import pytest

from kubesched.api.csi_translation import (
    TranslationError,
    csi_identity,
    csi_node_affinity,
    is_migrated_on,
    plugin_named,
    plugin_of,
)
from kubesched.api.meta import NodeSelector
from kubesched.api.volume import Volume
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
        pytest.param({"portworxVolume": {"volumeID": "p"}}, "pxd.portworx.com", "p", id="portworx"),
    ],
)
def test_inline_volume(source: Json, driver: str, handle: str) -> None:
    """A pod's in-tree volume has a driver and a handle."""
    assert (driver, handle) == csi_identity(msgspec.convert({"name": "vol", **source}, Volume))


@pytest.mark.parametrize(
    "source", [{"azureFile": {"shareName": "s"}}, {"vsphereVolume": {"volumePath": "p"}}]
)
def test_not_migrated(source: Json) -> None:
    """Some in-tree volumes do not count as CSI volumes, and keep their node affinity."""
    assert csi_identity(msgspec.convert({"name": "vol", **source}, Volume)) is None
    affinity: Json = {"nodeAffinity": {"required": terms({ZONE: ["a"]})}}
    volume = make_volume("v", labels={ZONE: "x"}, **source, **affinity)
    assert msgspec.convert(terms({ZONE: ["a"]}), NodeSelector) == csi_node_affinity(volume)


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
    ],
)
def test_volume(fields: Json, handle: str) -> None:
    """A persistent volume's handle may depend on its labels."""
    volume = make_volume("v", **fields)
    assert (GCE, handle) == csi_identity(volume.spec, volume.metadata.labels)


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
    ],
)
def test_no_counterpart(fields: Json, error: str) -> None:
    """A volume without a CSI counterpart raises an error."""
    with pytest.raises(TranslationError) as raised:
        csi_node_affinity(make_volume("v", **fields))
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
    found = csi_node_affinity(make_volume("v", labels=labels, **source, **more))
    want = None if expected is None else msgspec.convert(expected, NodeSelector)
    assert want == found


def test_plugins() -> None:
    """Seven in-tree plugins have drivers; five count as migrated."""
    names = ["gce-pd", "aws-ebs", "cinder", "azure-disk", "azure-file", "vsphere-volume"]
    plugins = [plugin_named(f"kubernetes.io/{name}") for name in [*names, "portworx-volume"]]
    migrated = [plugin is not None and plugin.is_migrated for plugin in plugins]
    assert [True, True, True, True, False, False, True] == migrated
    assert plugin_named("csi.example.com") is None
    assert plugin_of(make_volume("v", hostPath={"path": "/"}).spec) is None
    assert plugin_of(Volume(name="v")) is None


def test_is_migrated_on() -> None:
    """A node reports the plugins that are migrated there."""
    plugin = plugin_named("kubernetes.io/aws-ebs")
    assert plugin is not None
    migrated = make_csi_node("n", migrated=["kubernetes.io/gce-pd", "kubernetes.io/aws-ebs"])
    assert is_migrated_on(plugin, migrated)
    assert not is_migrated_on(plugin, make_csi_node("n"))
    assert not is_migrated_on(plugin, None)
