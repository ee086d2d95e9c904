"""Writes docs/configuration.md: every field, plugin and feature gate, from the code itself.

`--check` only compares and exits 1 if the page is stale.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from kubesched.config import args as shared_args
from kubesched.config import types
from kubesched.config.args import ARGS_PLUGINS, PluginArgs, complete_args
from kubesched.config.feature_gates import SCHEDULER_GATES, FeatureGates, GateSpec
from kubesched.config.load import default_configuration, encode_configuration
from kubesched.config.plugin_sets import default_plugins
from kubesched.plugins.node_resources import fit
from kubesched.plugins.registry import in_tree_registry
from kubesched.reports import described
from kubesched.scheduler.profile_plugins import implemented_points

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "configuration.md"

_HEAD = """# Configuration

A `KubeSchedulerConfiguration` of `kubescheduler.config.k8s.io/v1`, as kube-scheduler 1.36 reads it.
`kubesched run --config FILE --write-config-to -` prints a file with every default filled in, and
`simulate`, `explain`, `why` and `fit` take the same file. How errors are reported is shown in
[Migrate a configuration](howto/migrate-a-configuration.md). `kubesched run --help` describes the
flags; those of `--leader-elect*` override the file.

`tools/configuration.py` writes this page from the code.

## Example

One more profile, which packs nodes, and whose pods name it in `spec.schedulerName`:

```yaml
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
- schedulerName: packing
  pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy:
        type: MostAllocated
        resources: [{name: cpu, weight: 1}, {name: memory, weight: 1}]
```
"""
_ARGUMENTS_HEAD = """
## Arguments of plugins

In `profiles[].pluginConfig[]`. Plugins that are not listed take none.
"""
_GATES_HEAD = """
## Feature gates

`--feature-gates` takes every gate of Kubernetes 1.36. These are the ones that kube-scheduler reads;
the others are accepted and have no effect.

"""
_PARTS = {
    "KubeSchedulerConfiguration": (types.Configuration, ()),
    "leaderElection": (types.LeaderElection, ("leaderElection",)),
    "clientConnection": (types.ClientConnection, ("clientConnection",)),
    "profiles[]": (types.ProfileConfiguration, None),
    "profiles[].plugins.EXTENSION-POINT": (types.PluginSet, None),
    "profiles[].plugins.EXTENSION-POINT.enabled[], disabled[]": (types.PluginEntry, None),
    "profiles[].pluginConfig[]": (types.PluginConfig, None),
    "extenders[]": (types.ExtenderConfiguration, None),
    "extenders[].tlsConfig": (types.ExtenderTLSConfig, None),
    "extenders[].managedResources[]": (types.ExtenderManagedResource, None),
}
_SHARED = (
    shared_args.ResourceSpec,
    shared_args.UtilizationShapePoint,
    fit.ScoringStrategy,
    fit.RequestedToCapacityRatioParam,
)


def table(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a Markdown table."""
    headings = list(headings)
    lines = [headings, ["---"] * len(headings), *rows]
    escaped = ([cell.replace("|", "\\|") for cell in row] for row in lines)
    return "".join(f"| {' | '.join(cells)} |\n" for cells in escaped)


def fields(struct: type[msgspec.Struct], defaults: dict[str, Any]) -> str:
    """Return the table of a struct's fields."""
    _, texts = described(struct.__doc__ or "")
    rows = []
    for field in msgspec.structs.fields(struct):
        default = defaults.get(field.encode_name, default_of(field))
        if field.name not in texts:
            sys.exit(f"{struct.__name__}: name {field.name} under Attributes in the docstring")
        rows.append((f"`{field.encode_name}`", shown(default), texts[field.name]))
    return table(("field", "default", "meaning"), rows)


def default_of(field: msgspec.structs.FieldInfo) -> object:
    """Return a field's default as plain values; None if it is required."""
    if field.required:
        return None
    if field.default is msgspec.NODEFAULT:
        return msgspec.to_builtins(field.default_factory())
    return msgspec.to_builtins(field.default)


def shown(default: object) -> str:
    """Return a default as a cell of a table; nothing for what is empty."""
    if default in (None, "", [], (), {}):
        return ""
    is_struct = isinstance(default, dict) or (
        isinstance(default, list) and any(isinstance(one, dict) for one in default)
    )
    text = json.dumps(default)
    return "see below" if is_struct and len(text) > 80 else f"`{text.strip(chr(34))}`"


def _within(whole: dict[str, Any], path: tuple[str, ...] | None) -> dict[str, Any]:
    if path is None:
        return {}
    for name in path:
        whole = whole[name]
    return whole


def parts() -> Iterator[str]:
    """Yield the sections of the configuration's parts."""
    whole = encode_configuration(default_configuration(FeatureGates()))
    for place, (struct, path) in _PARTS.items():
        summary, _ = described(struct.__doc__ or "")
        yield f"\n## {place}\n\n{summary}\n\n{fields(struct, _within(whole, path))}"


def plugins() -> str:
    """Return the section of the plugins."""
    registry = in_tree_registry()
    weights = {
        one.name: one.weight or 1 for one in default_plugins(FeatureGates()).multi_point.enabled
    }
    rows = []
    implemented = implemented_points(registry)
    for name in sorted(registry):
        points = [point.value for point in implemented[name]]
        weight = str(weights[name]) if name in weights and "score" in points else ""
        rows.append((f"`{name}`", "yes" if name in weights else "no", weight, ", ".join(points)))
    return f"\n## Plugins\n\n{table(('plugin', 'by default', 'weight', 'extension points'), rows)}"


def arguments() -> Iterator[str]:
    """Yield the sections of the plugins' arguments."""
    yield _ARGUMENTS_HEAD
    gates = FeatureGates()
    for struct in sorted(PluginArgs.__subclasses__(), key=lambda found: found.__name__):
        plugin = struct.__name__.removesuffix("Args")
        defaults = complete_args(plugin, {}, gates) if plugin in ARGS_PLUGINS else {}
        yield f"\n### {plugin}\n\n{fields(struct, defaults)}"
    for shared in _SHARED:
        summary, _ = described(shared.__doc__ or "")
        yield f"\n### {shared.__name__}\n\n{summary}\n\n{fields(shared, {})}"


def feature_gates() -> str:
    """Return the section of the feature gates."""
    rows = (
        (f"`{gate.name}`", _stage(gate), str(gate.default).lower(), _effect(gate))
        for gate in SCHEDULER_GATES
    )
    return _GATES_HEAD + table(("gate", "stage", "default", "here"), rows)


def _stage(gate: GateSpec) -> str:
    return f"{gate.stage.value.lower() or 'GA'}{', locked' if gate.locked else ''}"


def _effect(gate: GateSpec) -> str:
    if gate.refused:
        return f"cannot be turned on: {gate.refused}"
    if gate.no_effect:
        return f"no effect: {gate.no_effect}"
    needs = " and ".join(f"`{name}`" for name in gate.depends_on)
    return f"needs {needs}" if needs else ""


def page() -> str:
    """Return the page's text."""
    return "".join((_HEAD, *parts(), plugins(), *arguments(), feature_gates()))


def write_or_check(page: Path, text: str) -> int:
    """Write a page, or compare it with `--check`; return the exit code."""
    if "--check" in sys.argv[1:]:
        if page.read_text(encoding="utf-8") == text:
            return 0
        tool = Path(sys.argv[0]).name
        sys.stderr.write(f"{page.relative_to(ROOT)} is stale: run tools/{tool}\n")
        return 1
    page.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(write_or_check(PAGE, page()))
