"""`kubesched snapshot`, and the files that commands save, without credentials.

A snapshot is a List of objects, one per line, then an empty list of each known kind. An empty list,
such as a PodList, declares that there are no other objects of its kind.

Objects have only the fields that kubesched reads (docs/decisions/0003): no environment, command or
argument of a container is among them. Of these, texts that nothing decides on are left out, because
they may hold credentials. Anonymous names sort as the real ones do, and are equal where those are.

Rejects:  nothing; a text field without a rule is a bug, which a test finds.
"""

from __future__ import annotations

import re
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import NoneType
from typing import Any, Final, TypeVar, get_args, get_origin, get_type_hints

import click
import msgspec
from msgspec import NODEFAULT, Struct
from msgspec.structs import FieldInfo, fields, replace

from kubesched.api.codec import encode_json
from kubesched.api.core import Node, Pod
from kubesched.api.csi_translation import MIGRATED_PLUGINS
from kubesched.api.meta import KubeObject, KubeStruct
from kubesched.api.resource import DeviceClass
from kubesched.api.storage import CSIDriver
from kubesched.api.well_known import SYSTEM_CLASSES
from kubesched.cli.errors import naming, write_warnings
from kubesched.cli.files import check_inputs, check_outputs, replacing
from kubesched.explain.sentences import count
from kubesched.inputs.cluster_input import read_cluster
from kubesched.inputs.completed_input import ClusterInput
from kubesched.inputs.errors import UserError
from kubesched.inputs.live_cluster import READ_KINDS
from kubesched.inputs.sources import ClusterSource
from kubesched.plugins.image_locality import normalized_image_name
from kubesched.scheduler.decision_recorder import DecisionRecorder, RecordedBy

# Fields.

T = TypeVar("T", bound=Struct)

KEPT_ANNOTATIONS: Final = frozenset(
    (
        "controller.kubernetes.io/pod-deletion-cost",
        "deployment.kubernetes.io/revision",
        "kubernetes.io/azure-file-resource-group",
        "kubernetes.io/config.mirror",
        "pv.kubernetes.io/bind-completed",
        "pv.kubernetes.io/bound-by-controller",
        "resource.kubernetes.io/extended-resource-claim",
        "resource.kubernetes.io/pod-claim-name",
        "volume.beta.kubernetes.io/storage-class",
        "volume.kubernetes.io/selected-node",
        MIGRATED_PLUGINS,
    )
)
"""The annotations that scheduling, controllers or draining depend on."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_DROPPED: Final = _words("message description parameters volume_attributes data user keyring")
"""Free text and parameters of drivers, which may hold credentials."""
_DROPPED_IF_ANONYMOUS: Final = _words(
    "generate_name pod_ip provider_id pod_cidr address device_path path target_portal portals"
    " initiator_name volumes_in_use PodStatus.host_ip ContainerPort.name AttachedVolume.name"
)
_RENAMED: Final = _words(
    "name namespace namespaces uid node_name nominated_node_name claim_name resource_claim_name"
    " resource_claim_template_name volume_name storage_class_name volume_attributes_class_name"
    " priority_class_name runtime_class_name service_account_name pod_group_name container_name"
    " containers secret_name secret_namespace share_name disk_name disk_uri pd_name volume_id"
    " volume_path storage_policy_name storage_policy_id volume_handle iqn monitors pool device"
    " share_id persistent_volume_name finalizers key value values topology_key match_label_keys"
    " mismatch_label_keys disrupted_pods labels match_labels node_selector selector"
    " RBDVolumeSource.image ContainerPort.host_ip"
)
_IMAGES: Final = _words("image reference")
_NODE_IMAGES: Final = _words("names")
_REQUESTS: Final = _words("request requests request_name DeviceRequest.name DeviceSubRequest.name")
_KEPT: Final = _words(
    "api_version kind api_group resource resource_version field_path creation_timestamp"
    " deletion_timestamp last_probe_time last_transition_time last_heartbeat_time time_added"
    " start_time allocation_timestamp operator effect type status reason phase protocol"
    " image_pull_policy pull_policy restart_policy resource_name when_unsatisfiable"
    " node_affinity_policy node_taints_policy scheduler_name preemption_policy qos_class resize"
    " action medium fs_type caching_mode iscsi_interface driver provisioner attacher"
    " reclaim_policy persistent_volume_reclaim_policy volume_mode volume_binding_mode access_modes"
    " unhealthy_pod_eviction_policy disruption_mode allocation_mode device_class_name"
    " expression extended_resource_name match_attribute distinct_attribute counter_set"
    " binding_conditions binding_failure_conditions declared_features source string_value"
    " version_value string_values version_values CounterSet.name CSINodeDriver.name"
    " PodCondition.type completion_mode"
)
"""Words of the API, resources, schedulers, drivers, and what expressions on devices refer to."""


Change = Callable[[Any], Any]


class FieldRules:
    """Applies the rules to objects; `renaming` renames texts, or None keeps them."""

    def __init__(self, renaming: AnonymousNames | None = None) -> None:
        self._plans: dict[type, list[tuple[str, Change]]] = {}
        self._left_out = (_DROPPED,) if renaming is None else (_DROPPED, _DROPPED_IF_ANONYMOUS)
        self._renamers: dict[frozenset[str], Callable[[str], str]] = {}
        if renaming is not None:
            self._renamers = {
                _RENAMED: renaming.text,
                _IMAGES: lambda name: renaming.image(normalized_image_name(name)),
                _NODE_IMAGES: renaming.image,
                _REQUESTS: lambda name: "/".join(map(renaming.text, name.split("/"))),
            }

    def apply(self, item: T) -> T:
        """Return an object, or a part of one, without what is left out."""
        changes: dict[str, Any] = {}
        for name, change in self._plan(type(item)):
            value = getattr(item, name)
            if value:
                changes[name] = change(value)
        return replace(item, **changes) if changes else item

    def _plan(self, type_: type) -> list[tuple[str, Change]]:
        plan = self._plans.get(type_)
        if plan is None:
            hints = get_type_hints(type_)
            changes = [
                (field.name, self._change(type_.__name__, field, hints[field.name]))
                for field in fields(type_)
            ]
            plan = [(name, change) for name, change in changes if change is not None]
            self._plans[type_] = plan
        return plan

    def _change(self, of: str, field: FieldInfo, hint: Any) -> Change | None:
        """Return what to do with the values of a field, None for nothing."""
        container, leaf = _parts(hint)
        if isinstance(leaf, type) and issubclass(leaf, KubeStruct):
            return _each(container, self.apply) if self._plan(leaf) else None
        if leaf is not str and leaf is not Any:
            return None
        if field.name == "annotations":
            return self._annotations
        rule = _rule(of, field.name)
        if rule in self._left_out:
            return lambda _: {} if field.default is NODEFAULT else field.default
        renamer = self._renamers.get(rule)
        return None if renamer is None else _renaming(field.name, container, renamer)

    def _annotations(self, given: dict[str, str]) -> dict[str, str]:
        rename = self._renamers.get(_RENAMED, str)
        return {
            name: text if name == MIGRATED_PLUGINS else rename(text)
            for name, text in given.items()
            if name in KEPT_ANNOTATIONS
        }


def _rule(of: str, name: str) -> frozenset[str]:
    """Return the rule for a field; a rule for the field of a single class takes precedence."""
    rules = (_DROPPED, _DROPPED_IF_ANONYMOUS, _RENAMED, _IMAGES, _NODE_IMAGES, _REQUESTS, _KEPT)
    for wanted in (f"{of}.{name}", name):
        for rule in rules:
            if wanted in rule:
                return rule
    raise AssertionError(f"{of}.{name} has no rule")


def _parts(hint: Any) -> tuple[Any, Any]:
    """Return the container of a field's values and their type: `tuple[str, ...]` is tuple, str.

    The container is None for a single value; the type is None for numbers, and for amounts, which
    are numbers or texts.
    """
    arguments = [part for part in get_args(hint) if part is not NoneType]
    container = get_origin(hint)
    if container in (tuple, dict):
        return container, _parts(arguments[-1 if container is dict else 0])[1]
    if container is None:
        return None, hint
    return _parts(arguments[0]) if len(arguments) == 1 else (None, None)


def _renaming(name: str, container: Any, rename: Callable[[str], str]) -> Change:
    """Return a function that renames the texts of a field."""
    if name == "disrupted_pods":
        # The values are times.
        return lambda pairs: {rename(pod): time for pod, time in pairs.items()}
    if container is dict:
        return lambda pairs: {rename(key): rename(text) for key, text in pairs.items()}
    return _each(container, rename)


def _each(container: Any, change: Change) -> Change:
    """Return a function that changes every value of a field."""
    if container is tuple:
        return lambda values: tuple([change(value) for value in values])
    if container is dict:
        return lambda pairs: {key: change(value) for key, value in pairs.items()}
    return change


# Anonymous names.

_INTEGER: Final = re.compile(r"[+-]?\d+")
_WELL_KNOWN: Final = re.compile(
    r"(?:(?:[\w.-]+\.)?(?:kubernetes\.io|k8s\.io)"
    r"|topology\.(?:gke\.io|(?:\w+\.)?csi\.[\w.-]+))/[\w.-]+"
)
_KEPT_TEXTS: Final = frozenset(
    (
        *("", "true", "false", "yes", "linux", "windows", "amd64", "arm64"),
        *("metadata.name", "metadata.namespace", *SYSTEM_CLASSES),
        *("0.0.0.0", "127.0.0.1", "::"),
    )
)
_ZONES: Final = "__"
_AWS: Final = "aws://"
_AWS_VOLUME: Final = "vol-"


class AnonymousNames:
    """Names such as `x042pod`, by the texts of the objects, which sort in the same order.

    Equal texts get equal names wherever they are. Integers are kept, because selectors compare
    them; so are well-known label keys, and names of drivers and device classes. Until all texts
    are gathered, `names` has the ends of the new names.
    """

    def __init__(self, objects: Iterable[KubeObject]) -> None:
        self.names: dict[str, str] = {}
        self._kept = set(_KEPT_TEXTS)
        # Claims of ephemeral volumes are named after their pod.
        self._composed: dict[str, tuple[str, str]] = {}
        found = list(objects)
        for item in found:
            name = item.metadata.name
            if isinstance(item, CSIDriver | DeviceClass):
                self._kept.add(name)
            self.names.setdefault(name, type(item).__name__.lower())
            self.names.setdefault(item.metadata.namespace, "namespace")
            if isinstance(item, Pod):
                for volume in item.spec.volumes:
                    if volume.ephemeral is not None:
                        self._composed[f"{name}-{volume.name}"] = (name, volume.name)
        gathering = FieldRules(self)
        for item in found:
            gathering.apply(item)
        width = len(str(len(self.names)))
        self.names = {
            text: f"x{number:0{width}}{self.names[text]}"
            for number, text in enumerate(sorted(self.names))
        }

    def image(self, text: str) -> str:
        """Return the new name of an image, which has a tag if the old one has a tag or digest."""
        name = self.names.setdefault(text, "image")
        return f"{name}:v" if normalized_image_name(text) == text else name

    def text(self, text: str) -> str:
        """Return the new name, label key or label value, in which parts may be kept."""
        if text in self._kept or _INTEGER.fullmatch(text) or _WELL_KNOWN.fullmatch(text):
            return text
        if text in self._composed:
            return "-".join(map(self.text, self._composed[text]))
        if _ZONES in text:
            return _ZONES.join(map(self.text, text.split(_ZONES)))
        if text.startswith(_AWS):
            return f"{_AWS}/{self.text(text.rpartition('/')[2])}"
        prefix = _AWS_VOLUME if text.startswith(_AWS_VOLUME) else ""
        return f"{prefix}{self.names.setdefault(text, '')}"


# Files.

STDOUT: Final = "-"
_HEAD: Final = b'{"apiVersion":"v1","kind":"List","metadata":{},"items":[\n'
_TAIL: Final = b"\n]}\n"
_TYPES: Final = tuple(kind.type for kind in READ_KINDS)
_GZIP_LEVEL: Final = 6
_GZIP: Final = zlib.MAX_WBITS | 16


def snapshot(source: ClusterSource, output: Path, anonymize: bool) -> None:
    """Record a cluster into one file, or on stdout for `-`."""
    if len(source.files) == 1 and not source.files[0].exists() and str(source.files[0]) != STDOUT:
        [file] = source.files
        raise UserError(f"{file}: there is no such file to read; -o {file} writes it")
    check_inputs(source.files)
    is_file = str(output) != STDOUT
    check_outputs({"-o": output if is_file else None}, source.files)
    found = read_cluster(source)
    write_warnings(found.warnings)
    click.echo(_write_snapshot(found, output, anonymous=anonymize), err=True)


def _write_snapshot(cluster: ClusterInput, output: Path, *, anonymous: bool) -> str:
    """Write a snapshot, and return a line about it.

    The file is compressed with gzip if its name ends in .gz; `-` is stdout. An anonymous snapshot
    has other names for everything.
    """
    objects = [item for item in cluster.objects if isinstance(item, _TYPES)]
    rules = FieldRules(AnonymousNames(objects) if anonymous else None)
    parts = _text(objects, cluster.complete, rules)
    if str(output) == STDOUT:
        with naming("stdout"):
            sys.stdout.buffer.writelines(parts)
            sys.stdout.buffer.flush()
    else:
        with replacing(output, keeps_part=False) as write:
            pack, end = _packer(output)
            for part in parts:
                write(pack(part))
            write(end())
    return f"{output}: {_summary(cluster.source, objects)}"


def _text(
    objects: Iterable[KubeObject], complete: Collection[type], rules: FieldRules
) -> Iterator[bytes]:
    before = _HEAD
    for item in objects:
        yield before + encode_json(rules.apply(item))
        before = b",\n"
    for kind in READ_KINDS:
        if kind.type not in complete:
            continue
        empty = {"apiVersion": kind.api_version, "kind": f"{kind.kind}List", "items": []}
        yield before + msgspec.json.encode(empty)
        before = b",\n"
    yield _TAIL if before != _HEAD else _HEAD + _TAIL


def _packer(file: Path) -> tuple[Callable[[bytes], bytes], Callable[[], bytes]]:
    """Return what turns parts into those of a file, with gzip if it is .gz; and what ends it."""
    if file.suffix != ".gz":
        return bytes, bytes  # unchanged, and nothing at the end
    packing = zlib.compressobj(_GZIP_LEVEL, zlib.DEFLATED, _GZIP)
    return packing.compress, packing.flush


def _summary(source: str, objects: Iterable[KubeObject]) -> str:
    numbers = Counter(map(type, objects))
    nodes, pods = numbers.pop(Node, 0), numbers.pop(Pod, 0)
    others = count(numbers.total(), "other object")
    return f"{source}: {count(nodes, 'node')}, {count(pods, 'pod')}, {others}"


# Recordings.


@contextmanager
def recording_to(file: Path | None, recorded_by: RecordedBy) -> Iterator[DecisionRecorder | None]:
    """Yield a recorder, None without a file, which is compressed with gzip if its name ends in .gz.

    What was recorded until an error or Ctrl-C stays in FILE.partial, and can be replayed.
    """
    if file is None:
        yield None
        return
    with replacing(file, keeps_part=True) as write:
        pack, end = _packer(file)
        keep = FieldRules().apply
        recorder = DecisionRecorder(recorded_by, lambda line: write(pack(line)), keep)
        try:
            yield recorder
        finally:
            if recorder.has_begun:
                recorder.end()
                write(end())
