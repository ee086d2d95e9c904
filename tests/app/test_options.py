"""Configurations as kube-scheduler 1.36 accepted, refused and completed them."""

import gzip
import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

from kubesched.api.field_errors import ConfigError
from kubesched.app.options import DeprecatedOptions, ElectionOptions, Options, with_flags
from kubesched.config.feature_gates import FeatureGates
from kubesched.config.load import default_configuration, encode_configuration, load_configuration
from kubesched.plugins.registry import in_tree_setup
from kubesched.scheduler.profile_building import build_profiles

DATA = Path(__file__).parent / "data"


def recorded(name: str) -> list[Any]:
    """Return the cases of a recorded file that have a configuration file."""
    with gzip.open(DATA / f"{name}.json.gz", "rt", encoding="utf-8") as file:
        return [case for case in json.load(file)["cases"] if case.get("config_text") is not None]


def written(text: str, tmp_path: Path) -> Path:
    """Write a configuration, and return its path."""
    path = tmp_path / "config.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def errors_of(text: str, tmp_path: Path) -> tuple[str, ...]:
    """Return what is wrong with a configuration, its plugins included."""
    path = written(text, tmp_path)
    gates = FeatureGates()
    try:
        configuration = load_configuration(path, gates)
        build_profiles(in_tree_setup(gates, configuration), random.Random(0))
    except ConfigError as error:
        return tuple(str(field_error) for field_error in error.errors)
    return ()


ERRORS = recorded("config-errors")
ACCEPTED = ERRORS[0]["config_text"].replace("v1beta3", "v1")
_ELSEWHERE = {"no-such-kubeconfig"}  # a matter of the connection, not of the configuration
_WORDED_DIFFERENTLY = {
    "wrong-api-version",
    "wrong-kind",
    "empty-file",
    "not-yaml",
    "unknown-field",
    "duplicate-field",
    "wrong-type",
    "enabled-no-name",
    "args-unknown-field",
    "lease-retry",
}


@pytest.mark.parametrize("case", ERRORS, ids=[case["name"] for case in ERRORS])
def test_recorded_files(case: dict[str, Any], tmp_path: Path) -> None:
    """kube-scheduler accepts and refuses the same files."""
    expected = case["accepted"] or case["name"] in _ELSEWHERE
    assert expected == (not errors_of(case["config_text"], tmp_path))


WORDED = [
    case
    for case in ERRORS
    if not case["accepted"] and case["name"] not in _WORDED_DIFFERENTLY | _ELSEWHERE
]


@pytest.mark.parametrize("case", WORDED, ids=[case["name"] for case in WORDED])
def test_messages_of_recorded_files(case: dict[str, Any], tmp_path: Path) -> None:
    """kube-scheduler's message contains each of our lines, except for the path before it."""
    match = re.search(r'err="(.*)"$', case["stderr"][0])
    assert match is not None
    recorded_line = json.loads(f'"{match[1]}"')
    for field_error in errors_of(case["config_text"], tmp_path):
        path, _, words = field_error.partition(": ")
        field = path.partition(".args.")[2] or path
        assert words in recorded_line
        assert "plugins" in path or field in recorded_line


WRITTEN = recorded("written-config")


@pytest.mark.parametrize("case", WRITTEN, ids=[case["name"] for case in WRITTEN])
def test_every_default_is_filled_in_as_recorded(case: dict[str, Any], tmp_path: Path) -> None:
    """`--write-config-to` writes what kube-scheduler writes."""
    path = written(case["config_text"], tmp_path)
    configuration = load_configuration(path, FeatureGates())
    configuration = with_flags(configuration, Options(config_file=path))
    assert case["written"] == encode_configuration(configuration)


def test_election_flags_win_over_the_file(tmp_path: Path) -> None:
    """A flag that was given counts, one that was not leaves the file's value."""
    path = written(ACCEPTED, tmp_path)
    election = ElectionOptions(leader_elect=True, resource_name="mine")
    options = Options(config_file=path, election=election)
    found = with_flags(load_configuration(path, FeatureGates()), options).leader_election
    assert (True, "mine", 15.0) == (
        found.leader_elect,
        found.resource_name,
        found.lease_duration_seconds,
    )


def test_deprecated_flags_count_without_a_file_only(tmp_path: Path) -> None:
    """`--kube-api-qps` is ignored beside `--config`."""
    deprecated = DeprecatedOptions(kubeconfig="k", kube_api_qps=7.0, profiling=False)
    gates = FeatureGates()
    flags = with_flags(default_configuration(gates), Options(deprecated=deprecated))
    assert ("k", 7.0, False, False) == (
        flags.client_connection.kubeconfig,
        flags.client_connection.qps,
        flags.enable_profiling,
        flags.enable_contention_profiling,
    )
    path = written(ACCEPTED, tmp_path)
    options = Options(config_file=path, deprecated=deprecated)
    file = with_flags(load_configuration(path, gates), options)
    assert 50.0 == file.client_connection.qps
