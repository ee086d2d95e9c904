"""The table of gates holds together."""

from kubesched.config.feature_gates import GATES, OTHER_GATES, SCHEDULER_GATES, Stage


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
