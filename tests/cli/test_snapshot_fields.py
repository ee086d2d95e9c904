"""What a snapshot keeps, leaves out and renames: a rule for every field, and the same decisions."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

from kubesched.api.codec import decode_object, encode_json
from kubesched.api.core import Pod, Service
from kubesched.api.meta import KubeObject
from kubesched.cli import snapshot
from kubesched.cli.snapshot import AnonymousNames, FieldRules
from kubesched.config.feature_gates import FeatureGates
from kubesched.inputs.live_cluster import READ_KINDS
from kubesched.plugins.registry import in_tree_registry
from kubesched.simulator.evaluate import Evaluator
from kubesched.testing.builders import make_pod

_FAMILIES = sorted((Path(__file__).parents[1] / "conformance" / "data").glob("*.jsonl.gz"))
_GATES = {"taints-comparison": {"TaintTolerationComparisonOperators": True}}
# A configuration that names labels needs to be changed along with them.
_NAMES_LABELS = re.compile(rb'"addedAffinity"|"defaultConstraints"')
_STEP = 10


def test_every_text_has_a_rule_and_every_rule_a_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """A field that is added to an object of the API needs a decision whether it may be recorded."""
    asked: set[str] = set()
    find = snapshot._rule

    def spy(of: str, name: str) -> frozenset[str]:
        asked.update((name, f"{of}.{name}"))
        return find(of, name)

    monkeypatch.setattr(snapshot, "_rule", spy)
    rules = FieldRules(AnonymousNames([]))
    for kind in READ_KINDS:
        rules.apply(kind.type())
    tables = [
        value
        for name, value in vars(snapshot).items()
        if isinstance(value, frozenset) and name not in ("KEPT_ANNOTATIONS", "_KEPT_TEXTS")
    ]
    assert 7 == len(tables)
    assert set() == frozenset().union(*tables) - asked


def _applied(rules: FieldRules, plain: Any) -> Any:
    return json.loads(encode_json(rules.apply(decode_object(plain))))


def _changed(scenario: dict[str, Any], rules: FieldRules) -> dict[str, Any]:
    """Return a scenario with the rules applied to all its objects."""
    changed = {**scenario, "objects": [_applied(rules, item) for item in _objects(scenario)]}
    if "pods" in scenario:
        return {**changed, "pods": [_applied(rules, item) for item in scenario["pods"]]}
    return {**changed, "pod": _applied(rules, scenario["pod"])}


def _objects(scenario: dict[str, Any]) -> list[Any]:
    found: list[Any] = scenario.get("objects", [])
    return found


def renamed_back(text: str, names: AnonymousNames) -> str:
    """Return a JSON text with the real names."""
    real = {name: json.dumps(text)[1:-1] for text, name in names.names.items()}
    return re.sub(r"x\d+[a-z]*", lambda match: real[match[0]], text)


@pytest.mark.slow
@pytest.mark.parametrize("file", _FAMILIES, ids=lambda file: file.name.partition(".")[0])
def test_decisions_do_not_depend_on_what_is_left_out_and_renamed(file: Path) -> None:
    """Recorded scenarios have the same answers without it, and with other names."""
    gates = FeatureGates.of(_GATES.get(file.name.partition(".")[0], {}))
    evaluator = Evaluator(in_tree_registry(), gates)
    with gzip.open(file) as lines:
        chosen = [line for line in list(lines)[::_STEP] if not _NAMES_LABELS.search(line)]
    assert chosen
    plain = FieldRules()
    for line in chosen:
        scenario = json.loads(line)["scenario"]
        expected = evaluator.evaluate(scenario)
        assert expected == evaluator.evaluate(_changed(scenario, plain))
        pods = scenario.get("pods") or [scenario["pod"]]
        names = AnonymousNames(decode_object(item) for item in [*_objects(scenario), *pods])
        answer = json.dumps(evaluator.evaluate(_changed(scenario, FieldRules(names))))
        assert expected == json.loads(renamed_back(answer, names))


def _anonymous(*objects: KubeObject) -> list[Any]:
    names = FieldRules(AnonymousNames(objects))
    return [names.apply(item) for item in objects]


def test_names_sort_as_before() -> None:
    """Anonymous names have the order of the real ones, for any number and characters."""
    before = [f"{letter}{number}" for letter in ("a", "b-", "Z.") for number in range(40)]
    after = [pod.metadata.name for pod in _anonymous(*map(make_pod, before))]
    order = sorted(range(len(before)), key=before.__getitem__)
    assert order == sorted(range(len(after)), key=after.__getitem__)


def test_equal_texts_stay_equal_wherever_they_are() -> None:
    """The name of a claim of an ephemeral volume still begins with its pod's; zones stay pairs."""
    plain = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web-0", "namespace": "shop", "labels": {"zones": "one__two"}},
        "spec": {
            "nodeSelector": {"zones": "one", "size": "12", "kubernetes.io/os": "linux"},
            "volumes": [{"name": "cache", "ephemeral": {"volumeClaimTemplate": {}}}],
        },
    }
    pod = decode_object(plain)
    assert isinstance(pod, Pod)
    claim = decode_object(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "web-0-cache", "namespace": "shop"},
        }
    )
    new, new_claim = _anonymous(pod, claim)
    assert new_claim.metadata.name == f"{new.metadata.name}-{new.spec.volumes[0].name}"
    assert new_claim.metadata.namespace == new.metadata.namespace != "shop"
    ((key, value),) = new.metadata.labels.items()
    selector = new.spec.node_selector
    assert value.split("__")[0] == selector[key]
    assert {"12", "linux"} < set(selector.values())
    assert "kubernetes.io/os" in selector


def test_annotations_that_scheduling_reads_are_kept() -> None:
    """All others may hold anything."""
    annotations = {"volume.kubernetes.io/selected-node": "a-1", "token": "hidden"}
    plain = {"metadata": {"name": "s", "annotations": annotations}, "kind": "Service"}
    item = decode_object({"apiVersion": "v1", **plain})
    assert isinstance(item, Service)
    kept = FieldRules().apply(item).metadata.annotations
    assert {"volume.kubernetes.io/selected-node": "a-1"} == kept
