"""Feature gates turn optional behaviours of Kubernetes on and off.

The gates of Kubernetes 1.36 are in `feature_gates.txt`: name, default, stage, perhaps `locked`, and
after a colon the gates that must be on, too. Below a gate is the reason why no decision depends on
it (`no effect`), or why it cannot be turned on (`refused`). All components of a cluster often share
one flag. So gates that only other components read are in the table, too: they are accepted and
checked, but have no effect.

Upstream: component-base/featuregate/feature_gate.go, pkg/features, apiserver/pkg/features,
          client-go/features (v1.36)
Rejects:  unknown gates, values that are not booleans, changes of locked gates, gates that are on
          while a gate that they depend on is off, and gates without an implementation.
Differs:  all errors of a flag are reported, not only the first; versions are not emulated. These
          gates cannot be turned on: CoordinatedLeaderElection, DRAListTypeAttributes,
          DRANodeAllocatableResources and DRAWorkloadResourceClaims.
"""

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from importlib.resources import files

import msgspec

from kubesched.api.field_errors import ConfigError, FieldError
from kubesched.api.go_text import GO_BOOLEANS, go_quote

FLAG = "--feature-gates"

_COMPONENT = "kube"


class Stage(StrEnum):
    """The maturity of a feature; AllAlpha and AllBeta switch all gates of a stage."""

    ALPHA = "ALPHA"
    BETA = "BETA"
    GA = ""
    DEPRECATED = "DEPRECATED"


class GateSpec(msgspec.Struct, frozen=True):
    """One gate.

    Attributes:
        name: Its name.
        default: Whether it is on by default.
        stage: Its maturity.
        locked: Whether the default cannot be changed.
        depends_on: The gates that must be on if it is on.
        no_effect: Why no decision depends on it; "" if some do.
        refused: Why it cannot be turned on; "" if it can.
    """

    name: str
    default: bool
    stage: Stage
    locked: bool = False
    depends_on: tuple[str, ...] = ()
    no_effect: str = ""
    refused: str = ""


def _parsed(block: str) -> Iterator[GateSpec]:
    """Yield the gates of a block of the table."""
    for entry in block.replace("\n  ", "\t").splitlines():
        if entry.startswith("#"):
            continue
        line, *notes = entry.split("\t")
        gate, _, depends_on = line.partition(": ")
        name, state, stage, *locked = gate.split()
        reasons = {
            key.replace(" ", "_"): reason
            for key, _, reason in (note.partition(": ") for note in notes)
        }
        yield GateSpec(
            name, state == "on", Stage[stage], bool(locked), tuple(depends_on.split()), **reasons
        )


SCHEDULER_GATES, OTHER_GATES = (
    tuple(_parsed(block))
    for block in files(__package__)
    .joinpath("feature_gates.txt")
    .read_text(encoding="utf-8")
    .split("\n\n")
)
"""The gates that kube-scheduler reads, and those that only other components read."""

GATES = {gate.name: gate for gate in (*SCHEDULER_GATES, *OTHER_GATES)}

# These two switch all gates of a stage that are not set individually.
_STAGE_SWITCHES = {"AllAlpha": Stage.ALPHA, "AllBeta": Stage.BETA}


class FeatureGates(msgspec.Struct, frozen=True):
    """The state of all gates: the defaults of 1.36, overridden by `settings` (name -> state)."""

    settings: Mapping[str, bool] = msgspec.field(default_factory=dict)

    def enabled(self, name: str) -> bool:
        """Return whether a gate is on; raises KeyError for an unknown gate."""
        setting = self.settings.get(name)
        if setting is not None:
            return setting
        if name in _STAGE_SWITCHES:
            return False
        if name not in GATES:
            raise KeyError(f"feature {go_quote(name)} is not registered in FeatureGates")
        gate = GATES[name]
        for switch, stage in _STAGE_SWITCHES.items():
            if gate.stage is stage and switch in self.settings:
                return self.settings[switch]
        return gate.default

    def states(self) -> tuple[tuple[GateSpec, bool], ...]:
        """Return every gate with its state, in the order of the table."""
        return tuple((gate, self.enabled(name)) for name, gate in GATES.items())

    @classmethod
    def parse(cls, text: str) -> "FeatureGates":
        """Parse "A=true,B=false" or "kube:A=true"; raises ConfigError with all errors."""
        errors: list[FieldError] = []
        settings: dict[str, bool] = {}
        components: set[str] = set()
        for part in text.split(","):
            if not part:
                continue
            component, colon, setting = part.rpartition(":")
            components.add(component.strip() if colon else "")
            if component.strip() not in ("", _COMPONENT):
                continue
            name, equals, value = (piece.strip() for piece in setting.partition("="))
            if not equals:
                errors.append(FieldError(FLAG, f"missing bool value for {name}"))
            elif value not in GO_BOOLEANS:
                reason = f"strconv.ParseBool: parsing {go_quote(value)}: invalid syntax"
                errors.append(FieldError(FLAG, f"invalid value of {name}={value}, err: {reason}"))
            else:
                settings[name] = GO_BOOLEANS[value]
        return cls.of(settings, (*_component_errors(components), *errors))

    @classmethod
    def of(cls, settings: Mapping[str, bool], errors: Iterable[FieldError] = ()) -> "FeatureGates":
        """Return gates with these settings; raises ConfigError with these and all other errors."""
        gates = cls(dict(settings))
        found = [*errors, *setting_errors(settings)]
        found = found or [*_dependency_errors(gates), *_refusals(gates)]
        if found:
            raise ConfigError(found)
        return gates


def _component_errors(components: set[str]) -> Iterable[FieldError]:
    """Check component prefixes, such as `kube` in "kube:A=true"."""
    if {"", _COMPONENT} <= components:
        words = "set kube feature gates with default empty prefix or kube: prefix consistently"
        yield FieldError(FLAG, f"{words}, do not mix use")
    for component in sorted(components - {"", _COMPONENT}):
        yield FieldError(FLAG, f"component not registered: {component}")


def setting_errors(settings: Mapping[str, bool], path: str = FLAG) -> Iterable[FieldError]:
    """Yield an error for each gate that does not exist or is locked to another state."""
    for name, value in settings.items():
        if name in _STAGE_SWITCHES:
            continue
        gate = GATES.get(name)
        if gate is None:
            yield FieldError(path, f"unrecognized feature gate: {name}")
        elif gate.locked and gate.default != value:
            wanted, state = str(value).lower(), str(gate.default).lower()
            message = f"cannot set feature gate {name} to {wanted}, feature is locked to {state}"
            yield FieldError(path, message)


def _dependency_errors(gates: FeatureGates) -> Iterable[FieldError]:
    for gate, is_on in gates.states():
        missing = [name for name in gate.depends_on if is_on and not gates.enabled(name)]
        if missing:
            listed = " ".join(missing)
            message = f"is enabled, but depends on features that are disabled: [{listed}]"
            yield FieldError(FLAG, f"{gate.name} {message}")


def _refusals(gates: FeatureGates) -> Iterable[FieldError]:
    for gate, is_on in gates.states():
        if is_on and gate.refused:
            words = f"cannot be turned on: {gate.refused}; write {gate.name}=false"
            yield FieldError(FLAG, f"{gate.name} {words}")
