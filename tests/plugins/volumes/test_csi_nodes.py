"""CSINodes per row, and when their cached columns change."""

from kubesched.api.csi_translation import plugin_named
from kubesched.plugins.volumes.csi_nodes import NO_LIMIT, CsiNodes
from kubesched.snapshot.objects import ObjectStore
from kubesched.testing.builders import make_node, make_table
from tests.plugins.volume_objects import make_csi_node

EBS = "kubernetes.io/aws-ebs"


def test_columns() -> None:
    """Limits, drivers and migrated plugins per row."""
    store = ObjectStore()
    store.put(make_csi_node("a", {"d": 3, "e": None}, migrated=[EBS]))
    store.put(make_csi_node("c", {"e": None}))
    columns = CsiNodes().of(make_table([make_node(name) for name in "abc"]), store)
    assert [True, False, True] == columns.exists.tolist()
    assert [True, False, False] == columns.has_limits.tolist()
    assert [3, NO_LIMIT, NO_LIMIT] == columns.limit("d").tolist()
    assert [True, False, True] == columns.has_driver("e").tolist()
    plugin = plugin_named(EBS)
    assert plugin is not None
    migrated = columns.is_migrated(plugin)
    assert migrated is not None
    assert [True, False, False] == migrated.tolist()
    never = plugin_named("kubernetes.io/gce-pd")
    assert never is not None
    assert columns.is_migrated(never) is None


def test_kept_columns_follow_changes() -> None:
    """Columns are kept until nodes come or go, or CSINodes change."""
    store, table, csi_nodes = (
        ObjectStore(),
        make_table([make_node("a"), make_node("b")]),
        CsiNodes(),
    )
    store.put(make_csi_node("b", {"d": 1}))
    columns = csi_nodes.of(table, store)
    table.update_node(make_node("a", labels={"x": "y"}))
    assert csi_nodes.of(table, store) is columns
    store.put(make_csi_node("b", {"d": 2}))
    assert [NO_LIMIT, 2] == csi_nodes.of(table, store).limit("d").tolist()
    table.remove_node("a")
    assert [2] == csi_nodes.of(table, store).limit("d").tolist()
    assert [False] == csi_nodes.of(table, ObjectStore()).exists.tolist()
    other = make_table([make_node("x"), make_node("b")])
    assert [False, True] == csi_nodes.of(other, store).exists.tolist()
