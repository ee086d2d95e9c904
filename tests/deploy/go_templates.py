"""Renders Helm charts, as far as ours needs it; `test_go_templates` holds it against Helm.

It knows text, comments, `define`, `include`, `if`, `with`, `range`, variables, pipelines and the
functions below. Anything else is an error.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

Plain = dict[str, Any]

_ACTION: Final = re.compile(r"\{\{(-(?=\s))?\s*(.*?)\s*((?<=\s)-)?\}\}", re.DOTALL)
_TOKEN: Final = re.compile(r'\s*("(?:[^"\\]|\\.)*"|\d+|:=|[|(),]|\$?[\w.]+|\$)')
_BLOCKS: Final = frozenset({"if", "with", "range", "define"})


class _Block(NamedTuple):
    kind: str
    header: str
    body: list[Any]
    otherwise: list[Any]


class _Scope(NamedTuple):
    dot: Any
    variables: Mapping[str, Any]


_Node = str | tuple[str] | _Block


def render_chart(
    folder: Path, values: Plain, release: str, namespace: str = "kube-system"
) -> dict[str, str]:
    """Return the rendered templates of a chart by their file names."""
    chart = yaml.safe_load((folder / "Chart.yaml").read_text(encoding="utf-8"))
    defaults = yaml.safe_load((folder / "values.yaml").read_text(encoding="utf-8"))
    sources = {
        path.name: path.read_text(encoding="utf-8")
        for path in sorted((folder / "templates").iterdir())
    }
    root = {
        "Values": merged(defaults, values),
        "Chart": {name[0].upper() + name[1:]: value for name, value in chart.items()},
        "Release": {"Name": release, "Namespace": namespace, "Service": "Helm"},
    }
    return render(sources, root)


def merged(below: Plain, above: Plain) -> Plain:
    """Return values with others on top; mappings are merged, lists are not."""
    both = dict(below)
    for name, value in above.items():
        old = both.get(name)
        both[name] = (
            merged(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
        )
    return both


def render(sources: Mapping[str, str], root: Plain) -> dict[str, str]:
    """Return every source rendered, but those whose names begin with an underscore."""
    renderer = _Renderer()
    trees = {name: renderer.parse(text) for name, text in sources.items()}
    return {
        name: renderer.text_of(tree, _Scope(root, {"$": root}))
        for name, tree in trees.items()
        if not name.startswith("_")
    }


def _parts(text: str) -> Iterator[str | tuple[str]]:
    """Yield text and actions; a dash at an action's edge takes the white space beside it."""
    at, trims = 0, False
    for action in _ACTION.finditer(text):
        before = text[at : action.start()]
        before = before.lstrip() if trims else before
        yield before.rstrip() if action[1] else before
        at, trims = action.end(), bool(action[3])
        if not action[2].startswith("/*"):
            yield (action[2],)
    yield text[at:].lstrip() if trims else text[at:]


class _Renderer:
    def __init__(self) -> None:
        self._defined: dict[str, list[_Node]] = {}
        self._functions: dict[str, Callable[..., Any]] = {
            **_FUNCTIONS,
            "include": lambda name, dot: self.text_of(self._defined[name], _Scope(dot, {"$": dot})),
        }

    def parse(self, text: str) -> list[_Node]:
        nodes, rest = self._parse_until(iter(_parts(text)), frozenset())
        assert not rest
        return nodes

    def _parse_until(
        self, parts: Iterator[str | tuple[str]], ends: frozenset[str]
    ) -> tuple[list[_Node], str]:
        nodes: list[_Node] = []
        for part in parts:
            if isinstance(part, str):
                nodes.append(part)
                continue
            word, _, header = part[0].partition(" ")
            if word in ends:
                return nodes, part[0]
            if word in _BLOCKS:
                self._take_block(nodes, word, header, parts)
            else:
                nodes.append(part)
        assert not ends, "a block does not end"
        return nodes, ""

    def _take_block(
        self, nodes: list[_Node], kind: str, header: str, parts: Iterator[str | tuple[str]]
    ) -> None:
        body, end = self._parse_until(parts, frozenset({"else", "end"}))
        otherwise: list[_Node] = []
        word, _, condition = end.removeprefix("else").strip().partition(" ")
        if word == "if":
            self._take_block(otherwise, "if", condition, parts)
        elif end == "else":
            otherwise, _ = self._parse_until(parts, frozenset({"end"}))
        if kind == "define":
            self._defined[json.loads(header)] = body
        else:
            nodes.append(_Block(kind, header, body, otherwise))

    def text_of(self, nodes: Sequence[_Node], scope: _Scope) -> str:
        variables = dict(scope.variables)
        scope = _Scope(scope.dot, variables)
        found: list[str] = []
        for node in nodes:
            if isinstance(node, str):
                found.append(node)
            elif isinstance(node, _Block):
                found.append(self._text_of_block(node, scope))
            elif ":=" in node[0]:
                name, _, pipeline = node[0].partition(":=")
                variables[name.strip()] = self._value(pipeline, scope)
            else:
                found.append(_shown(self._value(node[0], scope)))
        return "".join(found)

    def _text_of_block(self, block: _Block, scope: _Scope) -> str:
        names, _, pipeline = block.header.rpartition(":=")
        value = self._value(pipeline, scope)
        if not value:
            return self.text_of(block.otherwise, scope)
        if block.kind == "if":
            return self.text_of(block.body, scope)
        if block.kind == "with":
            return self.text_of(block.body, scope._replace(dot=value))
        items = sorted(value.items()) if isinstance(value, dict) else list(enumerate(value))
        variables = [name.strip() for name in names.split(",") if name.strip()]
        return "".join(
            self.text_of(
                block.body,
                _Scope(item[1], {**scope.variables, **dict(zip(variables, item, strict=False))}),
            )
            for item in items
        )

    def _value(self, pipeline: str, scope: _Scope) -> Any:
        tokens = _TOKEN.findall(pipeline)
        assert "".join(tokens) == _without_space(pipeline), pipeline
        value, rest = self._pipeline(tokens, scope)
        assert not rest, pipeline
        return value

    def _pipeline(self, tokens: list[str], scope: _Scope) -> tuple[Any, list[str]]:
        value, tokens = self._command(tokens, scope, ())
        while tokens and tokens[0] == "|":
            value, tokens = self._command(tokens[1:], scope, (value,))
        return value, tokens

    def _command(
        self, tokens: list[str], scope: _Scope, piped: tuple[Any, ...]
    ) -> tuple[Any, list[str]]:
        function = self._functions.get(tokens[0])
        tokens = tokens[1:] if function else tokens
        operands: list[Any] = []
        while tokens and tokens[0] not in {"|", ")"}:
            operand, tokens = self._operand(tokens, scope)
            operands.append(operand)
        if function:
            return function(*operands, *piped), tokens
        (value,) = operands
        assert not piped
        return value, tokens

    def _operand(self, tokens: list[str], scope: _Scope) -> tuple[Any, list[str]]:
        word, rest = tokens[0], tokens[1:]
        if word == "(":
            value, rest = self._pipeline(rest, scope)
            assert rest[0] == ")"
            return value, rest[1:]
        if word.startswith('"'):
            return json.loads(word), rest
        if word.isdigit():
            return int(word), rest
        name, _, path = word.partition(".")
        start = scope.variables[name] if name else scope.dot
        return _field(start, path), rest


def _field(value: Any, path: str) -> Any:
    for name in filter(None, path.split(".")):
        value = (value or {}).get(name)
    return value


def _without_space(pipeline: str) -> str:
    return "".join(re.findall(r'"(?:[^"\\]|\\.)*"|\S', pipeline))


def _shown(value: Any) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _to_yaml(value: Any) -> str:
    text: str = yaml.safe_dump(value, default_flow_style=False, width=10_000)
    return text.removesuffix("\n...\n").removesuffix("\n")


def _indented(spaces: int, text: str) -> str:
    return text.replace("\n", "\n" + " " * spaces)


def _printf(form: str, *values: Any) -> str:
    assert re.fullmatch(r"(?:[^%]|%s)*", form)
    return form % values


_FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "contains": lambda part, text: part in text,
    "default": lambda fallback, value: value or fallback,
    "index": lambda items, at: items[at],
    "nindent": lambda spaces, text: "\n" + " " * spaces + _indented(spaces, text),
    "or": lambda one, other: one or other,
    "printf": _printf,
    "quote": lambda value: json.dumps(_shown(value)),
    "sha256sum": lambda text: hashlib.sha256(text.encode()).hexdigest(),
    "toYaml": _to_yaml,
    "trimSuffix": lambda suffix, text: text.removesuffix(suffix),
    "trunc": lambda length, text: text[:length],
}
