"""Plans: the runs of a sweep, what each depends on, and what is wrong before any starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubesched.inputs.errors import UserError
from kubesched.sweep.plan import SweepPlan

from .sweeps import CLUSTER, SCENARIO, SWEEP, planned, write


def _differing(one: SweepPlan, other: SweepPlan) -> set[str]:
    first, second = one.cells[0].digests, other.cells[0].digests
    return {name for name in first | second if first.get(name) != second.get(name)}


def test_runs_are_all_combinations(tmp_path: Path) -> None:
    """In the order of the file; those of the first seed are carried out first."""
    write(tmp_path, day=SCENARIO, sweep=SWEEP)
    plan = planned(tmp_path)
    axes = ("day", "default", "none")
    expected = [(*axes, load, seed) for load in (60, 120) for seed in (1, 2)]
    assert expected == [run.key for run in plan.runs()]
    assert [1, 1, 2, 2] == [run.seed for run in plan.by_seed()]


def test_a_parameter_changes_a_field(tmp_path: Path) -> None:
    """Of a scenario, or of a configuration with all defaults filled in."""
    field = "configuration.profiles[0].pluginConfig[NodeResourcesFit].args.scoringStrategy.type"
    strategy = f'{{name: strategy, field: "{field}", values: [MostAllocated]}}'
    write(
        tmp_path,
        day=SCENARIO,
        sweep=SWEEP.replace("values: [60, 120]}", f"values: [7]}}, {strategy}"),
    )
    (cell,) = planned(tmp_path).cells
    assert cell.scenario is not None
    assert cell.scenario.workloads[0].pods is not None
    assert 7 == cell.scenario.workloads[0].pods.per_hour
    assert cell.configuration is not None
    (fit,) = (
        entry["args"]
        for entry in cell.configuration["profiles"][0]["pluginConfig"]
        if entry["name"] == "NodeResourcesFit"
    )
    assert "MostAllocated" == fit["scoringStrategy"]["type"]


def test_a_run_depends_on_what_it_reads(tmp_path: Path) -> None:
    """On the scenario's values, not its comments; on files, and modules that a module imports."""
    plugin = """
        from kubesched.framework.plugin import FilterPlugin
        import helper
        class Mine(FilterPlugin[None]):
            name = "Mine"
            def filter(self, state, pod, nodes): ...
    """
    write(
        tmp_path,
        day=SCENARIO + "objects: [more.yaml]\n",
        more=CLUSTER,
        sweep=SWEEP + "plugins: [{plugins: [mine:Mine]}]\n",
        mine=plugin,
        helper="import math\n",
        other="import math\n",
    )
    first = planned(tmp_path)
    assert {"mine.py", "helper.py", "more.yaml"} <= first.cells[0].digests.keys()
    assert "other.py" not in first.cells[0].digests
    write(tmp_path, day="# A comment.\n" + SCENARIO + "objects: [more.yaml]\n")
    assert set() == _differing(first, planned(tmp_path))
    write(tmp_path, more=CLUSTER + "# A comment.\n", helper="import os\n")
    assert {"more.yaml", "helper.py"} == _differing(first, planned(tmp_path))
    write(tmp_path, sweep=SWEEP + "plugins: [{plugins: [mine:Mine]}]\nduration: 5m\n")
    assert {"more.yaml", "helper.py", "input day"} == _differing(first, planned(tmp_path))


def test_a_run_depends_on_the_modules_of_a_package(tmp_path: Path) -> None:
    """However they are imported: from the package, relatively, or by their whole names."""
    package = tmp_path / "pack"
    package.mkdir()
    for name, text in {
        "__init__": "",
        "mine": "from pack import first\nfrom . import second\nimport pack.third\n",
        "first": "from .fourth import X\n",
        "second": "",
        "third": "",
        "fourth": "X = 1\n",
        "old": "print 'not of this Python'\n",
        "other": "",
    }.items():
        (package / f"{name}.py").write_text(text)
    with (package / "mine.py").open("a") as file:
        file.write("from kubesched.framework.plugin import FilterPlugin\n")
        file.write("try: from . import old\nexcept SyntaxError: ...\n")
        file.write("class Mine(FilterPlugin[None]):\n    name = 'Mine'\n")
        file.write(f"    def filter(self, state, pod, nodes): from {'.' * 99} import nothing\n")
    write(tmp_path, day=SCENARIO, sweep=SWEEP + "plugins: [{plugins: [pack.mine:Mine]}]\n")
    read = {Path(name).stem for name in planned(tmp_path).cells[0].digests if "pack/" in name}
    assert {"__init__", "mine", "first", "second", "third", "fourth", "old"} == read


def test_every_wrong_input_and_configuration_is_reported_at_once(tmp_path: Path) -> None:
    """With file and path, once, however many combinations have them."""
    write(
        tmp_path,
        day="version: 1\nnodes: []\nnode: []\n",
        config="apiVersion: kubescheduler.config.k8s.io/v1\nkind: X\n",
        sweep="""
            version: 1
            inputs: [{files: [day.yaml]}, {files: [config.yaml], times: true}]
            configurations: [{}, {file: config.yaml}]
            plugins: [{plugins: [nothing:Mine]}, {}]
        """,
    )
    with pytest.raises(UserError) as refused:
        planned(tmp_path)
    messages = [text.replace(f"{tmp_path}/", "") for text in refused.value.messages]
    expected = (
        'day.yaml: node: unknown field "node"',
        "day.yaml: duration: Required value",
        "config.yaml: --times is for openb lists (CSV)",
        "--times: a list of",
        "--plugin nothing:Mine: cannot import nothing",
        'config.yaml: kind: Unsupported value: "X"',
    )
    found = [text for text in messages if text.startswith(expected)]
    assert (len(expected) - 1, messages) == (len(messages), found)


def test_a_parameter_that_does_not_fit_names_its_value(tmp_path: Path) -> None:
    """A field of a scenario that is a cluster, a value that contradicts another field."""
    write(
        tmp_path,
        day=SCENARIO,
        prod=CLUSTER,
        sweep="""
            version: 1
            inputs: [{files: [day.yaml]}, {files: [prod.yaml]}]
            parameters: [{name: load, field: "scenario.workloads[0].pods.every", values: [1h]}]
        """,
    )
    with pytest.raises(UserError) as refused:
        planned(tmp_path)
    both = "Forbidden: there is every already, and only one may be"
    assert (
        f"{tmp_path}/day.yaml: workloads[0].pods.perHour: {both} (with load=1h)",
        "input prod: it is not a scenario, so it has no field to change (with load=1h)",
    ) == refused.value.messages


def test_missing_files_are_named_by_their_field(tmp_path: Path) -> None:
    """Before anything else is looked at."""
    write(tmp_path, sweep=SWEEP.replace("[day.yaml]", "[day.yaml, '-']"))
    with pytest.raises(UserError) as refused:
        planned(tmp_path)
    place = f"{tmp_path}/sweep.yaml: inputs[0]"
    assert (
        f"{place}.files[0]: {tmp_path}/day.yaml: it cannot be read: No such file or directory",
        f"{place}.files[1]: stdin can be read only once; name a file",
    ) == refused.value.messages


def test_figures_are_those_of_the_reports(tmp_path: Path) -> None:
    """A cluster's report has others than a scenario's."""
    write(tmp_path, day=SCENARIO, sweep=SWEEP + "figures: [summary.placed]\nshow: [totals.bound]\n")
    with pytest.raises(UserError, match=r"figures\[0\]: no report has a figure 'summary.placed'; "):
        planned(tmp_path)
