"""The Python API: scenarios on virtual time, and comparisons."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from kubesched import Cluster, ScenarioPlay, UserError, compare
from tests.cli.cluster import document, node, pod, write

PACK: Final = Path(__file__).resolve().parents[2] / "examples" / "scenarios" / "pack.yaml"


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    """Return a scenario of a minute."""
    content = {
        "version": 1,
        "duration": "1m",
        "seed": 3,
        "nodes": [{"name": "n", "count": 2, "allocatable": {"cpu": 4, "memory": "8Gi"}}],
        "workloads": [{"name": "web", "pods": {"every": "10s"}, "requests": {"cpu": 1}}],
    }
    file = tmp_path / "scenario.yaml"
    file.write_text(json.dumps(content), encoding="utf-8")
    return file


def test_answers_equal_those_of_the_commands(scenario: Path) -> None:
    """Simulations, and comparisons of two configurations."""
    spread, pack = (ScenarioPlay.from_scenario(scenario, config=one) for one in (None, PACK))
    assert document("simulate", scenario) == spread.simulate().to_dict()
    other = document("compare", scenario, scenario, "--seed", "3")
    found = compare(dict.fromkeys(other["runs"], spread))
    assert other == found.to_dict()
    digests = compare({"spread": spread, "pack": pack}).decision_digests
    assert digests[0] != digests[1]


def test_seed_and_duration_override_the_scenario(scenario: Path) -> None:
    """The report has the given ones."""
    report = ScenarioPlay.from_scenario(scenario, seed=5, duration_seconds=30.0).simulate()
    assert (5, 30.0) == (report.seed, report.duration_seconds)


def test_comparing_clusters(tmp_path: Path) -> None:
    """Their pending pods are placed."""
    small, large = [node("a", "1"), pod("p", "2")], [node("a", "4"), pod("p", "2")]
    files = [write(tmp_path, one, f"{at}.json") for at, one in enumerate((small, large))]
    found = compare({"0": Cluster.from_files(files[0]), "1": Cluster.from_files(files[1])})
    assert document("compare", *files) == found.to_dict()
    assert ["shop/p"] == [one.pod for one in found.differences[0].newly_fit]


@pytest.mark.parametrize(
    ("second", "error"),
    [
        (None, "give at least two"),
        ("cluster", "compared with clusters"),
        ("file", "compared with clusters"),
        ("seed", "the same seed"),
    ],
)
def test_inputs_that_cannot_be_compared(scenario: Path, second: str | None, error: str) -> None:
    """Errors say what is missing."""
    subjects: dict[str, Any] = {"a": ScenarioPlay.from_scenario(scenario)}
    if second is not None:
        subjects["b"] = {
            "cluster": Cluster.from_objects([node("a")]),
            "file": scenario,
            "seed": ScenarioPlay.from_scenario(scenario, seed=4),
        }[second]
    with pytest.raises(UserError, match=error):
        compare(subjects)


def test_errors_name_file_and_field_of_a_scenario(tmp_path: Path) -> None:
    """They are user errors."""
    file = tmp_path / "wrong.yaml"
    file.write_text("version: 1", encoding="utf-8")
    with pytest.raises(UserError, match=r"wrong\.yaml: duration"):
        ScenarioPlay.from_scenario(file)


def test_a_playback_has_the_pods_of_the_report(scenario: Path) -> None:
    """It has as many pods as arrive in the report."""
    play = ScenarioPlay.from_scenario(scenario)
    assert play.simulate().totals.arrived == len(play.playback().pods.names)


def test_a_scenario_as_a_mapping(scenario: Path) -> None:
    """It is what a file would say."""
    content = json.loads(scenario.read_text(encoding="utf-8"))
    expected = ScenarioPlay.from_scenario(scenario, seed=5).simulate()
    assert expected == ScenarioPlay.from_scenario(content, seed=5).simulate()
    with pytest.raises(UserError, match="nodes: Invalid value: 3: must be a list, not a number"):
        ScenarioPlay.from_scenario({**content, "nodes": 3})


def test_keywords_are_checked(scenario: Path, tmp_path: Path) -> None:
    """An unknown one was ignored, and a negative seed stands for the positive one."""
    unknown: Any = {"sed": 1}
    with pytest.raises(TypeError, match="keyword argument 'sed'; did you mean seed"):
        ScenarioPlay.from_scenario(scenario, **unknown)
    with pytest.raises(UserError, match="seed -1: it must not be negative"):
        ScenarioPlay.from_scenario(scenario, seed=-1)
    with pytest.raises(UserError, match=r"none\.yaml: it cannot be read: No such file"):
        ScenarioPlay.from_scenario(tmp_path / "none.yaml")
