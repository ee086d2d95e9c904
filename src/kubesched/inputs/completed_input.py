"""Completed input: objects with the API server's defaults, and warnings about the input.

Objects of a dump are complete; manifests lack the fields that the API server fills in. Objects
without a uid come from manifests, and are checked for unknown fields such as `nodeSelecter`.

Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/rest.go, field validation (v1.36)
Rejects:  nothing.
Differs:  large files, standard input and repeated fields are not checked; warnings, not errors.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from kubesched.api.codec import Skipped, Source
from kubesched.api.core import FINISHED, Node, Pod, PodSpec
from kubesched.api.decode import STANDARD_INPUT, content_of, files_in
from kubesched.api.meta import KubeObject
from kubesched.api.scheduling import PriorityClass
from kubesched.api.scheme import KINDS, find_kind, known_kinds
from kubesched.api.storage import StorageClass
from kubesched.api.yaml_syntax import load_documents
from kubesched.cluster.controllers.claims import default_class_name
from kubesched.explain.sentences import count, names
from kubesched.inputs.errors import first_of
from kubesched.simulator.defaults import PriorityClasses, with_defaults

_CONFIGURATION: Final = "KubeSchedulerConfiguration"
_STATUS: Final = "v1/Status"
_READ: Final = {
    kind.kind: [f"{kind.group}/{version}".lstrip("/") for version in kind.versions]
    for kind in KINDS
}


def all_kinds() -> tuple[type, ...]:
    """Return every kind that may be among the files."""
    return tuple(kind.type for kind in known_kinds())


class ClusterInput(NamedTuple):
    """A cluster that was read.

    Attributes:
        objects: The objects; a command gets them with the API server's defaults.
        warnings: One line each.
        complete: The kinds of which all objects are known.
        source: Its short name, such as `cluster.json` or `context kind-dev`.
        namespace: The namespace of the live context; "" for files.
    """

    objects: list[KubeObject]
    warnings: list[str]
    complete: tuple[type, ...]
    source: str
    namespace: str = ""


def completed(
    objects: Iterable[KubeObject], skipped: Skipped
) -> tuple[list[KubeObject], list[str]]:
    """Return objects with the API server's defaults, and warnings of one line each.

    `skipped` counts skipped objects by `apiVersion/Kind`.
    """
    given = list(objects)
    classes = PriorityClasses(item for item in given if isinstance(item, PriorityClass))
    storage = default_class_name(item.metadata for item in given if isinstance(item, StorageClass))
    found = [with_defaults(item, classes, storage) for item in given]
    warnings = [
        *not_read(found, skipped),
        *_on_unknown_nodes(found),
        *_unknown_classes(classes),
        *on_runtime_classes(
            item.spec for item in given if isinstance(item, Pod) and not item.metadata.uid
        ),
    ]
    return found, warnings


def listed_kinds(skipped: Iterable[str]) -> tuple[type, ...]:
    """Return the kinds of empty lists, such as `v1/PersistentVolumeClaimList`."""
    lists = (one.removesuffix("List").rpartition("/") for one in skipped if one.endswith("List"))
    kinds = (find_kind(api_version, kind) for api_version, _, kind in lists)
    return tuple(kind.type for kind in kinds if kind is not None)


# Warnings.


def not_read(objects: Sequence[KubeObject], skipped: Skipped) -> Iterator[str]:
    """Yield warnings about skipped objects that the user may have meant to be read."""
    if skipped and not objects:
        kinds = ", ".join(sorted(skipped))
        hint = "; pass it with --config" if kinds.endswith(f"/{_CONFIGURATION}") else ""
        yield f"nothing to schedule was found, only objects of kind {kinds}{hint}"
        return
    for name in skipped.partial_lists:
        yield f"{name}: only a part of it is there, as its metadata.continue shows; add the rest"
    for name in sorted(skipped):
        api_version, _, kind = name.rpartition("/")
        if kind == _CONFIGURATION:
            yield f"a {kind} among the objects is ignored; pass it with --config"
        elif name == _STATUS:
            yield "there is a Status among the objects: the command that printed it has failed"
        elif kind in _READ and api_version:
            known = " or ".join(_READ[kind])
            yield f"not read: {count(skipped[name], kind)} of {api_version}; it is read as {known}"


def _on_unknown_nodes(objects: Sequence[KubeObject]) -> Iterator[str]:
    known = frozenset(item.metadata.name for item in objects if isinstance(item, Node))
    missing: Counter[str] = Counter(
        item.spec.node_name
        for item in objects
        if isinstance(item, Pod)
        and item.spec.node_name
        and item.spec.node_name not in known
        and item.status.phase not in FINISHED
    )
    if missing:
        pods = count(missing.total(), "pod")
        nodes = names(sorted(missing))
        yield f"not counted, because their nodes are not in the input: {pods} on {nodes}"


def _unknown_classes(classes: PriorityClasses) -> Iterator[str]:
    if classes.unknown:
        listed = names(sorted(classes.unknown))
        yield f"priority 0 is used for pods of PriorityClasses not in the input: {listed}"


def on_runtime_classes(specs: Iterable[PodSpec]) -> Iterator[str]:
    """Yield a warning about the runtime classes of pods that no API server has created yet."""
    named = {spec.runtime_class_name for spec in specs if spec.runtime_class_name}
    if named:
        remedy = "write the overhead, nodeSelector and tolerations into pods"
        yield f"not read: RuntimeClass {names(sorted(named))}; {remedy}"


# Unknown fields.

# Larger files are dumps, not manifests, and are not read twice.
_BYTES_MAX: Final = 256 << 10


def unknown_fields(paths: Iterable[Path], stdin: bytes = b"") -> list[str]:
    """Return a line for each unknown field of objects without a uid; skip unreadable files.

    `stdin` is what was read there, if the paths name it.
    """
    files = [file for path in paths for file in files_in(path)]
    texts = ((Source(str(file), 0), _small(file, stdin)) for file in files)
    found = [
        f"{source}: {kind} {name}: unknown field {field}"
        for source, text in texts
        for item in _items(text)
        for kind, name, field in _of_object(item)
    ]
    return first_of(found, "unknown fields")


def _small(file: Path, stdin: bytes) -> bytes:
    """Return the content of a small file; nothing of a large one, or one that cannot be read."""
    if str(file) == STANDARD_INPUT:
        return stdin if len(stdin) <= _BYTES_MAX else b""
    try:
        if not file.is_file() or file.stat().st_size > _BYTES_MAX:
            return b""
        return file.read_bytes()
    except OSError:
        return b""


def _items(data: bytes) -> Iterator[dict[str, Any]]:
    """Yield the objects of a file; nothing if it cannot be parsed."""
    try:
        text = content_of(data, "")
        if text.lstrip()[:1] in (b"{", b"["):
            documents: list[Any] = [msgspec.json.decode(text)]
        else:
            documents = [document for _, document in load_documents(text.decode())]
    except (ValueError, RecursionError):
        return
    for document in documents:
        for item in document if isinstance(document, list) else [document]:
            if isinstance(item, dict):
                yield from _objects_in(item)


def _objects_in(item: dict[str, Any]) -> Iterator[dict[str, Any]]:
    items = item.get("items")
    if not str(item.get("kind", "")).endswith("List") or not isinstance(items, list):
        yield item
        return
    for each in items:
        if isinstance(each, dict):
            yield each


def _of_object(item: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    kind, version, metadata = item.get("kind"), item.get("apiVersion"), item.get("metadata")
    if not (isinstance(kind, str) and isinstance(version, str) and isinstance(metadata, dict)):
        return
    if metadata.get("uid"):
        return
    # Imported late: dumps do not need the schema tables.
    from kubesched.apiserver.schema import unknown_field_paths

    place = "/".join(str(metadata[part]) for part in ("namespace", "name") if metadata.get(part))
    for path in unknown_field_paths(version, kind, item):
        yield kind, place, path
