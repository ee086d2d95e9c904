"""Users' plugins from files and modules, and the errors if they cannot be used."""

from __future__ import annotations

import re
import sys
from importlib import metadata
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest

from kubesched.inputs import loading
from kubesched.inputs.errors import UserError
from kubesched.inputs.loading import load_plugin
from tests.cli.cluster import config, run, shop, write

PLUGIN = '''
"""A plugin for the test."""
from typing import ClassVar

import numpy as np

from kubesched.api.core import Namespace
from kubesched.framework.plugin import BindPlugin, FilterPlugin, Plugin, PreFilterPlugin
from kubesched.framework.status import NodeToStatus, unschedulable


class NotBeta(FilterPlugin[None]):
    name: ClassVar = "NotBeta"

    def filter(self, state, pod, nodes):
        rejected = np.array([name == "beta" for name in nodes.names])
        return NodeToStatus.rejecting(rejected, unschedulable("beta is taken"))

    def describe(self, state, pod, nodes):
        return f"this is {nodes.names[0]}"


class Unfinished(FilterPlugin[None]):
    name: ClassVar = "Unfinished"


class Unfit(FilterPlugin[None]):
    name: ClassVar = "Unfit"

    def filter(self, pod):
        pass


class Sync(BindPlugin):
    name: ClassVar = "Sync"

    def bind(self, cycle, pod, node_name):
        pass


class Scoped(NotBeta):
    name: ClassVar = "Scoped"
    scope: ClassVar = "row"


class Signing(NotBeta):
    name: ClassVar = "Signing"
    signed_kinds: ClassVar = ("Namespace",)


class Helper:
    def score(self, state, pod, nodes):
        return np.zeros(len(nodes), np.int64)


class HalfUsed(Helper, NotBeta):
    name: ClassVar = "HalfUsed"


class SigningList(NotBeta):
    name: ClassVar = "SigningList"
    signed_kinds: ClassVar = [Namespace]


class Scores(NotBeta):
    name: ClassVar = "Scores"

    def score(self, state, pod, nodes):
        pass


class ScoresNodes(NotBeta):
    name: ClassVar = "ScoresNodes"

    def score_node(self, state, pod, node):
        pass


class AddsPods(PreFilterPlugin):
    name: ClassVar = "AddsPods"

    def pre_filter(self, cycle, pod, snapshot):
        pass

    def add_pod(self, state, pod, added, nodes):
        pass


class Helped(NotBeta):
    name: ClassVar = "Helped"

    def score(self, node):
        """Help another method."""


class Argued(NotBeta):
    name: ClassVar = "Argued"
    args_type: ClassVar = dict


class Idle(Plugin):
    name: ClassVar = "Idle"


class Nameless(NotBeta):
    name: ClassVar = ""


class Broken(NotBeta):
    name: ClassVar = "Broken"

    def __init__(self, args, handle):
        raise OSError("no licence")


class TaintToleration(NotBeta):
    name: ClassVar = "TaintToleration"


NUMBER = 1
'''


@pytest.fixture
def plugin_file(tmp_path: Path) -> Path:
    """Return a file with plugins."""
    file = tmp_path / "my_plugins.py"
    file.write_text(PLUGIN)
    return file


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    """Return the shop's dump."""
    return write(tmp_path, shop())


def profile(directory: Path, plugins: str) -> Path:
    """Write a configuration with one profile."""
    return config(directory, f"profiles:\n- plugins: {plugins}\n")


def test_a_plugin_of_a_file_takes_part_without_a_configuration(
    cluster: Path, plugin_file: Path
) -> None:
    """It decides, and its message explains the decision."""
    result = run("explain", "web-1", cluster, "--plugin", f"{plugin_file}:NotBeta")
    assert result.exit_code == 0
    assert result.stdout.startswith("Pod shop/web-1 goes to alpha.\n")
    assert "  1 node: beta is taken (NotBeta)\n      beta: this is beta\n" in result.stdout


def test_a_method_with_other_parameters_may_have_any_name(plugin_file: Path) -> None:
    """It is no method of the extension point."""
    assert "Helped" == load_plugin(f"{plugin_file}:Helped").name


@pytest.mark.parametrize("name", ["SigningList", "HalfUsed"])
def test_signed_kinds_in_a_list_and_unused_methods_of_a_base(plugin_file: Path, name: str) -> None:
    """Both do no harm."""
    assert name == load_plugin(f"{plugin_file}:{name}").name


def test_a_configuration_that_mentions_the_plugin_decides(
    cluster: Path, plugin_file: Path, tmp_path: Path
) -> None:
    """Its extension points are then those of the configuration only."""
    option = ("--plugin", f"{plugin_file}:NotBeta")
    disabled = profile(tmp_path, "{multiPoint: {disabled: [{name: NotBeta}]}}")
    result = run("explain", "web-1", cluster, *option, "--config", disabled)
    assert result.stdout.startswith("Pod shop/web-1 goes to beta.\n")
    enabled = profile(tmp_path, "{filter: {enabled: [{name: NotBeta}]}}")
    result = run("explain", "web-1", cluster, *option, "--config", enabled)
    assert result.stdout.startswith("Pod shop/web-1 goes to alpha.\n")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        pytest.param("Nope", "there is no Nope; the module has NotBeta, Unfinished, Unfit, Sync, "),
        pytest.param("NUMBER", "it is not a class that inherits an extension point", id="value"),
        pytest.param("np", "it is not a class that inherits", id="module"),
        pytest.param("Unfinished", "the class does not implement filter", id="abstract"),
        pytest.param("Unfit", "filter(self, pod) is called as filter(self, state, pod, nodes)"),
        pytest.param("Sync", "bind must be `async def`, not `def`"),
        pytest.param("Scoped", "scope and score_scope must be members of Scope"),
        pytest.param("Signing", "signed_kinds must be a tuple of classes, such as (Namespace,)"),
        pytest.param("Scores", "score is not called, because Scores does not inherit ScorePlugin"),
        pytest.param(
            "ScoresNodes", "score_node is not called, because ScoresNodes does not inherit"
        ),
        pytest.param("AddsPods", "AddsPods does not inherit PreFilterExtensions"),
        pytest.param("Argued", "args_type must inherit PluginArgs"),
        pytest.param("Idle", "the class inherits no extension point"),
        pytest.param("Nameless", "the class has no name", id="nameless"),
        pytest.param(
            "TaintToleration", "a plugin named TaintToleration already exists", id="taken"
        ),
        pytest.param("Broken", 'plugin "Broken": OSError: no licence', id="constructor"),
    ],
)
def test_unusable_class(cluster: Path, plugin_file: Path, name: str, message: str) -> None:
    """The error is one line, with exit code 2."""
    result = run("explain", "web-1", cluster, "--plugin", f"{plugin_file}:{name}")
    assert (2, "") == (result.exit_code, result.stdout)
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("nonsense", "write module:Class", id="no-colon"),
        pytest.param(":A", "write module:Class", id="no-module"),
        pytest.param("m:", "write module:Class", id="no-class"),
        pytest.param("no.such.module:A", "cannot import no.such.module: Module", id="module"),
        pytest.param("missing.py:A", "missing.py: no such file", id="file"),
        pytest.param("..:A", "cannot import", id="relative"),
    ],
)
def test_a_missing_module(text: str, message: str) -> None:
    """The error names it."""
    with pytest.raises(UserError, match=message):
        load_plugin(text)


@pytest.mark.parametrize(
    ("content", "end"),
    [
        pytest.param("def", "bad.py, line 1)", id="syntax"),
        pytest.param("1 / 0", "division by zero ({}:1, in <module>)", id="raises"),
        pytest.param("import sys; sys.exit(3)", "SystemExit: 3 ({}:1, in <module>)", id="exits"),
        pytest.param("import no_such_thing", "'no_such_thing' ({}:1, in <module>)", id="import"),
        pytest.param(
            "from .other import A",
            "no known parent package ({}:1, in <module>); write package.module:Class instead of "
            "the file",
            id="relative-import",
        ),
        pytest.param("\x00", "source code string cannot contain null bytes", id="null-byte"),
    ],
)
def test_a_file_that_fails_when_imported(tmp_path: Path, content: str, end: str) -> None:
    """It is the user's error, not ours."""
    file = tmp_path / "bad.py"
    file.write_text(content)
    with pytest.raises(UserError, match=f"cannot import.*{re.escape(end.format(file))}$"):
        load_plugin(f"{file}:A")


def test_a_file_may_import_the_modules_beside_it(
    tmp_path: Path, plugin_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a script may, and as a plugin of a sweep."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "mine.py").write_text(f"from {plugin_file.stem} import NotBeta")
    assert load_plugin(f"{tmp_path / 'mine.py'}:NotBeta").name == "NotBeta"


def test_modules_beside_two_plugins_need_two_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python would import the first one for both."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name in "ab":
        (tmp_path / name).mkdir()
        (tmp_path / name / "helping.py").write_text("from kubesched.framework import PerRowScore")
        text = "import helping\nclass One(helping.PerRowScore):\n    name = 'One'\n"
        text += "    def score_node(self, state, pod, node): return 1\n"
        (tmp_path / name / "one.py").write_text(text)
    for _ in range(2):
        assert load_plugin(f"{tmp_path / 'a' / 'one.py'}:One").name == "One"
        with pytest.raises(UserError, match=r"import .*a/helping.py instead of .*b/helping.py"):
            load_plugin(f"{tmp_path / 'b' / 'one.py'}:One")
    del sys.modules["helping"]


def test_a_module_of_the_import_path() -> None:
    """It is imported by name."""
    place = "kubesched.plugins.taint_toleration:TaintToleration"
    assert load_plugin(place).name == "TaintToleration"


# Entry points.


@pytest.fixture
def installed(plugin_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the plugins of the file an installed package's."""
    monkeypatch.syspath_prepend(str(plugin_file.parent))
    group = loading.ENTRY_POINT_GROUP
    found = EntryPoints(
        EntryPoint(name, f"my_plugins:{name}", group) for name in ("NotBeta", "Nope", "NUMBER")
    )
    monkeypatch.setattr(metadata, "entry_points", lambda *, group: found.select(group=group))


@pytest.mark.usefixtures("installed")
def test_an_entry_point_takes_part_if_enabled(cluster: Path, tmp_path: Path) -> None:
    """Without a configuration that enables it, it has no effect."""
    assert "goes to beta" in run("explain", "web-1", cluster).stdout
    enabled = profile(tmp_path, "{multiPoint: {enabled: [{name: NotBeta}]}}")
    assert "goes to alpha" in run("explain", "web-1", cluster, "--config", enabled).stdout


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("name", ["Nope", "NUMBER"])
def test_a_broken_entry_point_is_named_if_enabled(cluster: Path, tmp_path: Path, name: str) -> None:
    """Otherwise it is ignored."""
    enabled = profile(tmp_path, f"{{multiPoint: {{enabled: [{{name: {name}}}]}}}}")
    result = run("explain", "web-1", cluster, "--config", enabled)
    assert result.exit_code == 2
    assert f"installed plugin {name} (my_plugins:{name}): " in result.stderr
