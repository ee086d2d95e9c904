"""Objects, configuration and registry from options and files."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from kubesched.config.feature_gates import FeatureGates
from kubesched.config.load import load_configuration
from kubesched.framework import ReservePlugin
from kubesched.inputs.errors import UserError
from kubesched.inputs.loading import (
    load_checked_scheduler,
    load_scheduler,
    with_plugins,
    with_scheduler_name,
)
from kubesched.inputs.sources import SchedulerOptions
from kubesched.scheduler.profile_building import build_profiles
from kubesched.testing.builders import make_pod
from tests.cli.cluster import config


def test_without_options_the_default_configuration_is_used() -> None:
    """Its profile is default-scheduler."""
    scheduler = load_scheduler(SchedulerOptions())
    assert [profile.scheduler_name for profile in scheduler.configuration.profiles] == [
        "default-scheduler"
    ]


def test_field_errors_of_a_configuration_name_the_file(tmp_path: Path) -> None:
    """Each field error is a line with file and field."""
    file = config(tmp_path, "parallelism: -1\npodMaxBackoffSeconds: -1\n")
    with pytest.raises(UserError) as caught:
        load_scheduler(SchedulerOptions(config=file))
    assert len(caught.value.messages) >= 2
    for message in caught.value.messages:
        assert message.startswith(f"{file}: ")


def test_with_plugins_adds_unmentioned_plugins(tmp_path: Path) -> None:
    """Plugins that no profile mentions are added to all profiles."""
    profiles = (
        "[{schedulerName: a, plugins: {score: {enabled: [{name: Mine}]}}}, {schedulerName: b}]"
    )
    configuration = load_configuration(config(tmp_path, f"profiles: {profiles}"), FeatureGates())
    mine, other = (type(name, (ReservePlugin,), {"name": name}) for name in ("Mine", "Other"))
    for mentioned in ([], [mine]):
        assert with_plugins(configuration, mentioned) is configuration
    changed = with_plugins(configuration, [mine, other])
    for profile in changed.profiles:
        assert [plugin.name for plugin in profile.plugins.multi_point.enabled][-1] == "Other"


def test_a_queue_sort_plugin_replaces_priority_sort(tmp_path: Path) -> None:
    """A profile has only one, so that naming another is enough."""
    file = tmp_path / "newest.py"
    file.write_text(
        "from kubesched.framework import QueueSortPlugin\n"
        "class NewestFirst(QueueSortPlugin):\n"
        "    name = 'NewestFirst'\n"
        "    def sort_key(self, queued):\n"
        "        return (-queued.timestamp,)\n"
    )
    scheduler = load_scheduler(SchedulerOptions(plugins=(f"{file}:NewestFirst",)))
    [profile] = build_profiles(scheduler, Random(0)).values()
    assert "NewestFirst" == profile.queue_sort_plugin.name


def test_with_scheduler_name() -> None:
    """The name replaces the pod's own; None keeps it."""
    found = make_pod(spec={"schedulerName": "mine"})
    assert with_scheduler_name(found, None) is found
    assert with_scheduler_name(found, "other").spec.scheduler_name == "other"


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("Mine", "name its class with --plugin"),
        ("NodeResourcesMostAllocated", "NodeResourcesFit with a scoringStrategy replaces it"),
    ],
)
def test_unknown_plugins_of_a_configuration(tmp_path: Path, name: str, remedy: str) -> None:
    """The error tells how a plugin of one's own is added, and what replaces a former one."""
    file = config(tmp_path, f"profiles:\n- plugins: {{filter: {{enabled: [{{name: {name}}}]}}}}\n")
    with pytest.raises(UserError) as caught:
        load_checked_scheduler(SchedulerOptions(config=file))
    place = f"{file}: profiles[0].plugins.filter.enabled[0]: FilterPlugin"
    assert (f'{place} "{name}" does not exist; {remedy}',) == caught.value.messages
