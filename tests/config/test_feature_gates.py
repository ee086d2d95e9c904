"""Feature gates: defaults, settings, and what a flag line may not say."""

import re
from pathlib import Path
from typing import Final

import pytest

import kubesched
from kubesched.api.field_errors import ConfigError
from kubesched.config.feature_gates import GATES, OTHER_GATES, SCHEDULER_GATES, FeatureGates, Stage

SOURCE: Final = Path(kubesched.__file__).parent


def _bad_value(name: str, value: str) -> str:
    reason = f'strconv.ParseBool: parsing "{value}": invalid syntax'
    return f"invalid value of {name}={value}, err: {reason}"


def _refused(name: str, why: str) -> str:
    return f"{name} cannot be turned on: {why}; write {name}=false"


def _dependent(name: str, missing: str) -> str:
    return f"{name} is enabled, but depends on features that are disabled: [{missing}]"


@pytest.mark.parametrize(
    ("name", "default"),
    [
        ("SchedulerQueueingHints", True),
        ("SchedulerAsyncAPICalls", False),
        ("OpportunisticBatching", True),
        ("GenericWorkload", False),
        ("DynamicResourceAllocation", True),
        ("DRADeviceTaintRules", False),
        ("DRASchedulerFilterTimeout", True),
        ("NodeDeclaredFeatures", True),
        ("StorageCapacityScoring", False),
        ("TaintTolerationComparisonOperators", False),
    ],
)
def test_defaults(name: str, default: bool) -> None:
    """The defaults are those of 1.36."""
    assert default is FeatureGates().enabled(name)


def test_dependencies_are_gates() -> None:
    """What a gate depends on is in the table, and on by default where the gate is."""
    for gate in GATES.values():
        for name in gate.depends_on:
            assert GATES[name].default or not gate.default


def test_names_are_unique() -> None:
    """No gate is listed twice."""
    assert len(SCHEDULER_GATES) + len(OTHER_GATES) == len(GATES)


def test_only_finished_features_are_locked() -> None:
    """Only gates of stage GA or DEPRECATED are locked."""
    stages = {gate.stage for gate in GATES.values() if gate.locked}
    assert stages <= {Stage.GA, Stage.DEPRECATED}


def test_alpha_is_off() -> None:
    """No alpha feature is on by default."""
    assert not [gate.name for gate in GATES.values() if gate.stage is Stage.ALPHA and gate.default]


def test_each_gate_of_the_scheduler_has_an_effect_or_a_reason() -> None:
    """Every gate is read, locked, refused, or has a reason why nothing depends on it."""
    sources = [path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py")]
    read = {name for text in sources for name in re.findall(r'enabled\(\s*"(\w+)"', text)}
    for gate in SCHEDULER_GATES:
        reasons = (gate.name in read, gate.locked, bool(gate.refused), bool(gate.no_effect))
        # What is locked may be read all the same.
        assert sum(reasons) == 1 or (gate.locked and not any(reasons[2:])), gate.name
    assert not read & {gate.name for gate in OTHER_GATES}
    assert not [gate.name for gate in OTHER_GATES if gate.no_effect or gate.refused]


def test_unknown_name_raises() -> None:
    """An unknown gate raises KeyError."""
    with pytest.raises(KeyError, match="not registered"):
        FeatureGates().enabled("NoSuchGate")


def test_parse_sets_gates() -> None:
    """Blanks around names and values are ignored; the last setting of a gate counts."""
    gates = FeatureGates.parse(
        " GenericWorkload = t,,GangScheduling=1,OpportunisticBatching=F,OpportunisticBatching=true"
    )
    assert gates.enabled("GenericWorkload")
    assert gates.enabled("GangScheduling")
    assert gates.enabled("OpportunisticBatching")


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        pytest.param("Foo=true", ["unrecognized feature gate: Foo"], id="unknown"),
        pytest.param("Foo", ["missing bool value for Foo"], id="no-value"),
        pytest.param("GenericWorkload=yes", [_bad_value("GenericWorkload", "yes")], id="bad-value"),
        pytest.param(
            "SchedulerQueueingHints=false",
            ["cannot set feature gate SchedulerQueueingHints to false, feature is locked to true"],
            id="locked",
        ),
        pytest.param(
            "GangScheduling=true",
            [_dependent("GangScheduling", "GenericWorkload")],
            id="dependency",
        ),
        pytest.param(
            "DRAResourceClaimDeviceStatus=false",
            [
                _dependent(name, "DRAResourceClaimDeviceStatus")
                for name in (
                    "DRADeviceBindingConditions",
                    "DRAResourceClaimGranularStatusAuthorization",
                )
            ],
            id="dependents-on-by-default",
        ),
        pytest.param(
            "CoordinatedLeaderElection=true,DRANodeAllocatableResources=true",
            [
                _refused("CoordinatedLeaderElection", "leaders are elected by Lease alone"),
                _refused(
                    "DRANodeAllocatableResources",
                    "what devices take of a node's allocatable resources is not counted",
                ),
            ],
            id="not there",
        ),
        pytest.param(
            "A,B=true,PodLevelResources=2",
            [
                "missing bool value for A",
                _bad_value("PodLevelResources", "2"),
                "unrecognized feature gate: B",
            ],
            id="all-at-once",
        ),
    ],
)
def test_parse_rejects(text: str, messages: list[str]) -> None:
    """All errors of a flag are reported, with upstream's messages."""
    with pytest.raises(ConfigError) as error:
        FeatureGates.parse(text)
    assert messages == [field_error.message for field_error in error.value.errors]


def test_setting_a_locked_gate_to_its_default_is_allowed() -> None:
    """A locked gate can be set to its own value."""
    assert FeatureGates.parse("SchedulerQueueingHints=true").enabled("SchedulerQueueingHints")


def test_all_alpha_and_all_beta_address_gates_of_a_stage() -> None:
    """A switch sets the gates of its stage except those set individually, in any order."""
    off = {gate.name for gate in GATES.values() if gate.refused} | {"VolumeLimitScaling"}
    line = ",".join(f"{name}=false" for name in sorted(off))
    gates = FeatureGates.parse(f"{line},AllAlpha=true")
    for gate in GATES.values():
        if gate.stage is Stage.ALPHA:
            assert (gate.name not in off) is gates.enabled(gate.name)
        else:
            assert gate.default is gates.enabled(gate.name)
    assert not FeatureGates.of({"AllBeta": False}).enabled("NodeDeclaredFeatures")
