"""Decoding of API objects and lists of objects, and encoding of objects.

JSON is decoded directly into typed values; YAML, and JSON with nulls, by way of plain values. Every
error is a `DecodeError` with the location and what was expected.

Upstream: kubectl's reading of files: cli-runtime/pkg/resource (v1.36)
Differs:  null means absent, except in maps of strings and quantities, where it is "" or 0 as in
          Go; objects of unknown kinds are counted, not rejected. A key that a YAML mapping has
          twice is an error. A generated name ends in 1.
"""

import re
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final, NamedTuple

import msgspec

from kubesched.api.meta import KubeObject, ObjectMeta
from kubesched.api.object_checks import first_invalid_value
from kubesched.api.scheme import Kind, find_kind, kind_of
from kubesched.api.yaml_syntax import YamlError, load_documents

_LIST_DEPTH_MAX: Final = 8
_NULL_DEPTH_MAX: Final = 200
_NAMESPACE: Final = "default"
_STREAMS: Final = {"": "input", "-": "stdin"}
_ARRAY_START: Final = ord("[")
_PATH: Final = re.compile(r"(?P<expected>.*) - at `(?:key in )?(?P<path>\$.*)`", re.DOTALL)
_ENTRY: Final = "[...]"
_STEP: Final = re.compile(r"\[[^]]*\]|\.[^.\[]+")
_UNQUOTED: Final = re.compile(r"Expected `(?:.*\| )?str(?: \|.*)?`, got `(?:int|float|bool)`")
_FAST_HEADER: Final = re.compile(
    rb'\s*\{\s*"(?:apiVersion"\s*:\s*"(?P<version>[^"\\]*)"\s*,\s*"kind"\s*:\s*"(?P<kind>[^"\\]*)"'
    rb'|kind"\s*:\s*"(?P<kind2>[^"\\]*)"\s*,\s*"apiVersion"\s*:\s*"(?P<version2>[^"\\]*)")'
)
_START_BYTES: Final = 256
_TEXT_MAPS: Final = frozenset(
    ("labels", "annotations", "matchLabels", "nodeSelector", "parameters", "volumeAttributes")
)
_QUANTITY_MAPS: Final = frozenset(
    ("requests", "limits", "capacity", "allocatable", "allocatedResources", "overhead")
)

Plain = dict[str, Any]


class Source(msgspec.Struct, frozen=True):
    """The location of an object.

    Attributes:
        file: The file's name, `-` for standard input.
        document: The number of the document in the file, from 1; 0 means the whole file.
        index: The position in the document's list, from 0; None outside lists.
    """

    file: str = ""
    document: int = 1
    index: int | None = None

    def __str__(self) -> str:
        file = _STREAMS.get(self.file, self.file)
        document = f": document {self.document}" if self.document else ""
        item = "" if self.index is None else f": items[{self.index}]"
        return f"{file}{document}{item}"


class DecodeError(ValueError):
    """An object, or the text around it, cannot be decoded.

    Attributes:
        source: Its location.
        object_name: `Kind namespace/name` as far as known, or "".
        path: The field, such as `$.spec.priority`, or "".
        problem: What was expected, or what is wrong.
    """

    def __init__(
        self, source: Source, problem: str, *, object_name: str = "", path: str = ""
    ) -> None:
        self.source = source
        self.object_name = object_name
        self.path = path
        self.problem = problem
        super().__init__(": ".join(filter(None, (str(source), object_name, path, problem))))


class UnknownKindError(DecodeError):
    """An object has a kind that is not known.

    Attributes:
        api_version, kind: As the object has them.
    """

    def __init__(self, source: Source, api_version: str, kind: str, object_name: str) -> None:
        self.api_version = api_version
        self.kind = kind
        problem = f"kind {kind!r} of apiVersion {api_version!r} is not known"
        super().__init__(source, problem, object_name=object_name)


class Loaded(NamedTuple):
    """An object and its location."""

    object: KubeObject
    source: Source


class _Header(msgspec.Struct, rename="camel"):
    api_version: str | None = None
    kind: str | None = None


_NO_HEADER: Final = _Header()


class _RawList(msgspec.Struct):
    items: list[msgspec.Raw] | None = None
    metadata: Any = None


class _Name(msgspec.Struct):
    name: str = ""
    namespace: str = ""


class _NamedHeader(msgspec.Struct):
    kind: str = ""
    metadata: _Name = msgspec.field(default_factory=_Name)


_header_decoder: Final = msgspec.json.Decoder(_Header)
_list_decoder: Final = msgspec.json.Decoder(_RawList)
_array_decoder: Final = msgspec.json.Decoder(list[msgspec.Raw])
_decoders: Final[dict[type[KubeObject], msgspec.json.Decoder[KubeObject]]] = {}

Raw = Plain | bytes | msgspec.Raw
_CONTAINERS: Final = (msgspec.Raw, bytes, dict, list)
# A part of a text is not known to be UTF-8 before it is decoded.
_MALFORMED: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
Document = Raw | list[Any]


def decode_object(raw: Raw, source: Source = Source()) -> KubeObject:
    """Decode an object from JSON text or from its plain value.

    Raises DecodeError if it is not an object, or its kind is unknown.
    """
    api_version, name = _header(raw, source, _NO_HEADER)
    kind = find_kind(api_version, name)
    if kind is None:
        raise UnknownKindError(source, api_version, name, _name_of(raw))
    return _decode(raw, kind, source)


class Skipped(Counter[str]):
    """Counts the `apiVersion/Kind` of objects of unknown kinds and of empty lists."""

    def __init__(self) -> None:
        super().__init__()
        self._continues: dict[str, bool] = {}

    @property
    def partial_lists(self) -> list[str]:
        """The lists, such as `v1/PodList`, of which only pages before the last one were read."""
        return [name for name, continues in self._continues.items() if continues]

    def note_page(self, name: str, *, continues: bool) -> None:
        """Note that a list, or a page of it, was read, and whether there is a next page."""
        self._continues[name] = continues and self._continues.get(name, True)


def objects_in(
    raw: Document, source: Source, skipped: Skipped, *, namespace: str = _NAMESPACE
) -> Iterator[Loaded]:
    """Yield the object, or the objects of the list, in a document of JSON text or plain values.

    `skipped` counts those that are left out. Namespaced objects that name no namespace get the
    given one. Raises DecodeError if something in it cannot be decoded.
    """
    for item, place in _objects_in(raw, source, skipped, _NO_HEADER, 0):
        yield Loaded(_placed(item, namespace), place)


def _objects_in(
    raw: Document, source: Source, skipped: Skipped, inherited: _Header, depth: int
) -> Iterator[tuple[KubeObject, Source]]:
    if depth > _LIST_DEPTH_MAX:
        raise DecodeError(source, f"lists are nested deeper than {_LIST_DEPTH_MAX} levels")
    if not isinstance(raw, _CONTAINERS):
        raise DecodeError(source, f"expected `object`, got `{_type(raw)}`")
    if isinstance(raw, list) or _is_array(raw):
        items = raw if isinstance(raw, list) else _json(_array_decoder, raw, source)
        of_items = inherited
    else:
        api_version, name = _header(raw, source, inherited)
        kind = find_kind(api_version, name)
        if kind is not None:
            yield _decode(raw, kind, source), source
            return
        if not name.endswith("List"):
            skipped[f"{api_version}/{name}"] += 1
            return
        items, metadata = _list_items(raw, source)
        if not items and name != "List":
            skipped[f"{api_version}/{name}"] += 1
        elif find_kind(api_version, name.removesuffix("List")) is not None:
            continues = isinstance(metadata, dict) and bool(metadata.get("continue"))
            skipped.note_page(f"{api_version}/{name}", continues=continues)
        # The items of a PodList do not repeat their kind.
        of_items = _NO_HEADER if name == "List" else _Header(api_version, name.removesuffix("List"))
    for index, item in enumerate(items):
        place = Source(source.file, source.document, index)
        header = _header_at_start(item) if isinstance(item, msgspec.Raw) else None
        kind = None if header is None else find_kind(*header)
        if kind is not None and depth < _LIST_DEPTH_MAX:
            # As nearly always: an object, not another list.
            yield _decode(item, kind, place), place
        else:
            yield from _objects_in(item, place, skipped, of_items, depth + 1)


def _is_array(raw: Raw) -> bool:
    if isinstance(raw, dict):
        return False
    if isinstance(raw, msgspec.Raw):
        return memoryview(raw)[0] == _ARRAY_START
    return bytes(raw[:64]).lstrip()[:1] == b"["


def _list_items(raw: Any, source: Source) -> tuple[list[Any], Any]:
    """Return the items of a list, and its metadata."""
    if not isinstance(raw, dict):
        found = _json(_list_decoder, raw, source)
        return found.items or [], found.metadata
    items = raw.get("items")
    if items is not None and not isinstance(items, list):
        raise DecodeError(source, f"expected `array`, got `{_type(items)}`", path="$.items")
    return items or [], raw.get("metadata")


def _header(raw: Raw, source: Source, inherited: _Header) -> tuple[str, str]:
    header = _plain_header(raw, source) if isinstance(raw, dict) else _raw_header(raw, source)
    kind = header.kind or inherited.kind
    api_version = header.api_version or inherited.api_version
    if not kind:
        problem = "missing"
        if not api_version:
            problem += "; Kubernetes objects have apiVersion and kind"
            if isinstance(raw, dict) and "version" in raw:
                problem += "; a scenario is a file of its own, which `kubesched simulate` plays"
        raise DecodeError(source, problem, object_name=_name_of(raw), path="$.kind")
    if not api_version:
        raise DecodeError(source, "missing", object_name=_name_of(raw), path="$.apiVersion")
    return api_version, kind


def _raw_header(raw: bytes | msgspec.Raw, source: Source) -> _Header:
    # Nearly every object begins with apiVersion and kind; then it need not be parsed twice.
    header = _header_at_start(raw)
    return _json(_header_decoder, raw, source) if header is None else _Header(*header)


def _header_at_start(raw: bytes | msgspec.Raw) -> tuple[str, str] | None:
    """Return apiVersion and kind of an object that begins with them; None for other text."""
    return _header_of_start(bytes(memoryview(raw)[:_START_BYTES]).partition(b'"metadata"')[0])


@lru_cache(maxsize=256)
def _header_of_start(start: bytes) -> tuple[str, str] | None:
    match = _FAST_HEADER.match(start)
    if match is None:
        return None
    version = match["version"] if match["kind2"] is None else match["version2"]
    kind = match["kind"] if match["kind2"] is None else match["kind2"]
    return version.decode(errors="replace"), kind.decode(errors="replace")


def _plain_header(raw: Plain, source: Source) -> _Header:
    try:
        return msgspec.convert(raw, _Header)
    except msgspec.ValidationError as error:
        raise _failure(error, source, raw) from None


def _decode(raw: Raw, kind: Kind, source: Source) -> KubeObject:
    try:
        item = _typed(raw, kind.type)
    except msgspec.ValidationError as error:
        item = _decode_without_nulls(raw, kind, source, error)
    except _MALFORMED as error:
        raise _failure(error, source, raw) from None
    _check(item, kind, source)
    return item


def _typed(raw: Raw, type_: type[KubeObject]) -> KubeObject:
    if isinstance(raw, dict):
        return msgspec.convert(raw, type_)
    decoder = _decoders.get(type_)
    if decoder is None:
        decoder = _decoders[type_] = msgspec.json.Decoder(type_)
    return decoder.decode(raw)


def _decode_without_nulls(
    raw: Raw, kind: Kind, source: Source, error: msgspec.ValidationError
) -> KubeObject:
    try:
        plain = raw if isinstance(raw, dict) else msgspec.json.decode(raw)
        found = _without_nulls(plain, "", 0)
    except (*_MALFORMED, ValueError):
        # The first error, about types, is more helpful than this one.
        raise _failure(error, source, raw) from None
    try:
        return msgspec.convert(found, kind.type)
    except msgspec.ValidationError as second:
        raise _failure(second, source, raw) from None


def without_nulls(value: Any) -> Any:
    """Return a copy of plain values without the null fields of objects; nulls in lists stay."""
    if isinstance(value, dict):
        return {name: without_nulls(child) for name, child in value.items() if child is not None}
    if isinstance(value, list):
        return [without_nulls(child) for child in value]
    return value


def _without_nulls(value: Any, field: str, depth: int) -> Any:
    if depth > _NULL_DEPTH_MAX:
        raise RecursionError
    if isinstance(value, list):
        return [_without_nulls(item, "", depth + 1) for item in value if item is not None]
    if not isinstance(value, dict):
        return value
    if field in _TEXT_MAPS or field in _QUANTITY_MAPS:
        empty = "" if field in _TEXT_MAPS else "0"
        value = {key: empty if item is None else item for key, item in value.items()}
    return {
        key: _without_nulls(item, key, depth + 1) for key, item in value.items() if item is not None
    }


def _check(item: KubeObject, kind: Kind, source: Source) -> None:
    metadata = item.metadata
    if item.kind and item.kind != kind.kind:
        name = _object_name(kind.kind, metadata)
        raise DecodeError(source, "it is there twice", object_name=name, path="$.kind")
    if not metadata.name and not metadata.generate_name:
        raise DecodeError(source, "missing", object_name=kind.kind, path="$.metadata.name")
    invalid = first_invalid_value(item)
    if invalid is not None:
        name = _object_name(kind.kind, metadata)
        raise DecodeError(source, invalid.message, object_name=name, path=invalid.path)


def _placed(item: KubeObject, namespace: str) -> KubeObject:
    """Return the object in the namespace in which kubectl would create it, with a name."""
    kind = kind_of(type(item))
    metadata = item.metadata
    name = metadata.name or f"{metadata.generate_name}1"
    wanted = (metadata.namespace or namespace) if kind.is_namespaced else ""
    if (name, wanted) == (metadata.name, metadata.namespace):
        return item
    metadata = msgspec.structs.replace(metadata, name=name, namespace=wanted)
    return msgspec.structs.replace(item, metadata=metadata)


def _json(decoder: msgspec.json.Decoder[Any], raw: Any, source: Source) -> Any:
    try:
        return decoder.decode(raw)
    except _MALFORMED as error:
        raise _failure(error, source, raw) from None


def _failure(error: Exception, source: Source, raw: Raw) -> DecodeError:
    """Return the error for what msgspec raised."""
    if isinstance(error, msgspec.ValidationError):
        problem, path = field_problem(error, raw)
        return DecodeError(source, problem, object_name=_name_of(raw), path=path)
    if isinstance(error, RecursionError):
        return DecodeError(source, "it is nested too deeply", object_name=_name_of(raw))
    return json_error(error, raw, source)


def _with_keys(path: str, problem: str, raw: Raw) -> str:
    """Return a path with the keys of maps, which msgspec leaves out."""
    try:
        plain = raw if isinstance(raw, dict) else msgspec.json.decode(raw)
    except _MALFORMED:
        return path
    steps = _STEP.findall(path.removeprefix("$"))
    found = (keyed for keyed, value in _along(steps, plain) if f"got `{_type(value)}`" in problem)
    return "$" + next(found, path.removeprefix("$"))


def _along(steps: list[str], value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the paths that these steps may stand for, each with what is there."""
    if not steps:
        yield "", value
        return
    step, *others = steps
    nexts: list[tuple[str, Any]] = []
    if isinstance(value, list):
        nexts = [(step, value[at]) for at in range(len(value)) if step == f"[{at}]"]
    elif isinstance(value, dict):
        nexts = [(f".{key}", one) for key, one in value.items() if step in (_ENTRY, f".{key}")]
    for name, one in nexts:
        for below, found in _along(others, one):
            yield name + below, found


def field_problem(error: msgspec.ValidationError, raw: Raw) -> tuple[str, str]:
    """Return what is wrong in `raw`, with a remedy if there is one, and the field's path."""
    match = _PATH.fullmatch(str(error))
    problem, path = (match["expected"], match["path"]) if match else (str(error), "")
    if _ENTRY in path:
        path = _with_keys(path, problem, raw)
    remedy = "; write it in quotes" if _UNQUOTED.fullmatch(problem) else ""
    return f"{problem[:1].lower()}{problem[1:]}{remedy}", path


_BYTE: Final = re.compile(r"^JSON is malformed: (?P<problem>.*) \(byte (?P<byte>\d+)\)$")


def json_error(error: Exception, raw: Any, source: Source) -> DecodeError:
    """Return the error for malformed JSON, with line and column if they are known."""
    if isinstance(error, UnicodeDecodeError):
        return DecodeError(source, f"it is not UTF-8: {error.reason}")
    match = _BYTE.match(str(error))
    if match is None:
        return DecodeError(source, f"it is not JSON: {str(error).lower()}")
    before = bytes(raw)[: int(match["byte"])]
    line = before.count(b"\n") + 1
    column = len(before) - before.rfind(b"\n")
    where = f"line {line}, column {column}"
    return DecodeError(source, f"it is not JSON: {match['problem']} at {where}")


def empty_error(file: str) -> DecodeError:
    """Return the error for an empty file, which a failed command leaves behind."""
    problem = "it is empty; expected objects, as `kubectl get -o json` or `-o yaml` prints them"
    return DecodeError(Source(file, 0), problem)


def _yaml_hint(text: str, line: int) -> str:
    """Return the remedy for two frequent mistakes; "" for others."""
    wrong = "".join(text.splitlines()[line - 1 : line])
    if "{{" in wrong:
        return "; it is a template: render it first"
    return "; indent with spaces instead of tabs" if wrong.startswith("\t") else ""


def yaml_objects(text: str, file: str, skipped: Skipped, *, namespace: str) -> Iterator[Loaded]:
    """Yield the objects of all documents of a YAML text; see `objects_in`."""
    # Concatenated lists without `---` between them would override each other.
    documents = load_documents(text, rejects_repeats=True)
    number = 0
    while True:
        try:
            number, value = next(documents)
        except StopIteration:
            if not number:
                raise empty_error(file) from None
            return
        except YamlError as error:
            where = f" at line {error.line}, column {error.column}" if error.line else ""
            problem = f"it is not YAML for JSON: {error}{where}{_yaml_hint(text, error.line)}"
            raise DecodeError(Source(file, error.document), problem) from None
        source = Source(file, number)
        if not isinstance(value, dict | list):
            remedy = "; `kubectl get -o json` or `-o yaml` prints objects"
            problem = f"expected `object`, got `{_type(value)}`{remedy}"
            raise DecodeError(source, problem, path="$")
        yield from objects_in(value, source, skipped, namespace=namespace)


def _type(value: object) -> str:
    names = {str: "str", bool: "bool", int: "int", float: "float", dict: "object", list: "array"}
    return names.get(type(value), "null")


def _name_of(raw: Any) -> str:
    """Return as much of an object's kind and name as can be decoded, for a message."""
    try:
        if isinstance(raw, dict):
            header = msgspec.convert(raw, _NamedHeader)
        else:
            header = msgspec.json.decode(raw, type=_NamedHeader)
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return ""
    return _object_name(header.kind, header.metadata)


def _object_name(kind: str, metadata: ObjectMeta | _Name) -> str:
    place = f"{metadata.namespace}/" if metadata.namespace else ""
    return f"{kind} {place}{metadata.name}".strip()


def encode_json(item: KubeObject) -> bytes:
    """Return the object as JSON; a missing apiVersion and kind are filled in."""
    if not (item.kind and item.api_version):
        kind = kind_of(type(item))
        item = msgspec.structs.replace(item, api_version=kind.api_version, kind=kind.kind)
    return msgspec.json.encode(item)
