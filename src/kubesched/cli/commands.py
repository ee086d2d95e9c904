"""The commands: what each takes, and the module that carries it out.

Help and options are in `commands.txt` and the tables of flags. The function of a command has its
name, and is imported when the command runs: neither help nor completion loads a scheduler. What it
raises because of an input, an output or a plugin is reported by `errors`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, Final, NamedTuple, TypeAlias, Union

import click

from kubesched import __version__
from kubesched.cli.flags import FILE_PATH, DaemonCommand, SectionedCommand, go_name, sections

_HELP: Final = "commands.txt"


class Group(NamedTuple):
    """Options that a function gets as one value.

    Attributes:
        parameter: The function's parameter.
        type_: `module:Class` of the value; its fields have the names of the options.
        parts: The options, in the order of the help.
    """

    parameter: str
    type_: str
    parts: tuple[Part, ...]


Part: TypeAlias = Union[str, click.Parameter, Group]  # noqa: UP007 - it names itself
"""A section of `commands.txt`, a table of flags, a parameter, or a group of these."""


def _imported(place: str) -> Callable[..., Any]:
    """Return the function or class at `module:name`."""
    module, _, name = place.partition(":")
    found: Callable[..., Any] = getattr(import_module(module), name)
    return found


def _complete_pod(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return names of pending pods; the client is imported when a shell asks for them."""
    names: list[str] = _imported("kubesched.cli.completion:complete_pod")(ctx, incomplete)
    return names


def _print_version(ctx: click.Context, parameter: click.Parameter, value: str) -> None:
    # `--version=v1.2.3` sets the version that upstream reports; here it has no effect.
    if value in {"true", "raw"}:
        click.echo(f"kubesched, version {__version__}")
        ctx.exit()
    if value != "false" and not value.startswith("v"):
        raise click.BadParameter(f"{value!r} is not true, false, raw or v1.2.3", ctx, parameter)


_VERSION: Final = click.Option(
    ["--version"],
    is_flag=False,
    flag_value="true",
    default="false",
    expose_value=False,
    is_eager=True,
    callback=_print_version,
    metavar="",
    help="Show the version and exit.",
)
_POD: Final = click.Argument(["pod"], metavar="POD", shell_complete=_complete_pod)
_FILES: Final = click.Argument(["files"], nargs=-1, type=FILE_PATH)

_SOURCE: Final = "kubesched.inputs.sources:ClusterSource"
_CLUSTER: Final = Group("source", _SOURCE, (_FILES, "cluster"))
_CLUSTER_FLAGS: Final = Group("source", _SOURCE, ("files", "cluster"))
"""The same for a command whose arguments are something else: files are --cluster FILE."""
_SCHEDULER: Final = Group(
    "scheduler",
    "kubesched.inputs.sources:SchedulerOptions",
    ("scheduler", "feature gates", "plugins", "seed"),
)
_QUESTION: Final = Group(
    "asked", "kubesched.cli.asking:AnswerOptions", ("html", "output", _SCHEDULER)
)
_TIMELINE: Final = Group(
    "timeline",
    "kubesched.cli.simulate:TimelineOptions",
    ("html", "decision log", "record", "duration", "times"),
)


class CommandSpec(NamedTuple):
    """What there is to know of a command before it runs.

    Attributes:
        summary: Its line in the list of commands.
        parts: Its parameters, in the order of the help.
        module: The module of its function, if that is not named as the command.
        type_: Its class.
        settings: Of its contexts.
    """

    summary: str
    parts: tuple[Part, ...] = ()
    module: str = ""
    type_: type[click.Command] = click.Command
    settings: Mapping[str, Any] = {}


COMMANDS: Final = {
    "run": CommandSpec(
        "Run as a cluster's scheduler.",
        ("run_flags.txt", _VERSION),
        type_=DaemonCommand,
        settings={"token_normalize_func": go_name},
    ),
    "sandbox": CommandSpec(
        "Run a cluster on this machine, with fake nodes.",
        (
            "sandbox_flags.txt",
            click.Argument(
                ["command"], nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND...]"
            ),
        ),
        type_=SectionedCommand,
        settings={"allow_interspersed_args": False},
    ),
    "demo": CommandSpec("Show what kubesched does, on a small cluster.", ("demo",)),
    "shadow": CommandSpec(
        "Compare another scheduler's decisions with kubesched's.", ("shadow", "record", _QUESTION)
    ),
    "replay": CommandSpec(
        "Make recorded decisions again, and show what differs now.",
        (click.Argument(["recording"], type=FILE_PATH), _QUESTION),
        module="shadow",
    ),
    "why": CommandSpec(
        "Tell why a pod is pending, and what would make it fit.",
        (_POD, "namespace", _CLUSTER, "why", _QUESTION),
    ),
    "explain": CommandSpec(
        "Explain why a pod is placed on a node, or on none.",
        (_POD, "namespace", _CLUSTER, "explain", _QUESTION),
    ),
    "fit": CommandSpec(
        "Tell whether workloads fit, and how many more would.",
        (
            click.Argument(["manifests"], nargs=-1, required=True, type=FILE_PATH),
            *("namespace", _CLUSTER_FLAGS, "fit", _QUESTION),
        ),
    ),
    "drain": CommandSpec(
        "Tell what happens when nodes are drained, pod by pod.",
        (
            click.Argument(
                ["words"],
                metavar="[NODE]... [FILES]...",
                nargs=-1,
                shell_complete=FILE_PATH.shell_complete,
            ),
            *(_CLUSTER_FLAGS, "drain", _QUESTION),
        ),
        module="changes",
    ),
    "whatif": CommandSpec(
        "Tell what a plan of changes does to the pods.",
        (click.Argument(["plan"], type=FILE_PATH), _CLUSTER, _QUESTION),
        module="changes",
    ),
    "upgrade": CommandSpec(
        "Find an order in which nodes can be upgraded.",
        (_CLUSTER, "upgrade", _QUESTION),
        module="changes",
    ),
    "compact": CommandSpec(
        "Find nodes that can be removed.", (_CLUSTER, "compact", _QUESTION), module="changes"
    ),
    "top": CommandSpec(
        "Show what pods request of nodes, and the room that is left.",
        (
            click.Argument(
                ["group"],
                required=False,
                metavar="[nodes|pools|zones|namespaces|priorities|owners]",
                shell_complete=FILE_PATH.shell_complete,
            ),
            *(_CLUSTER, "top", _QUESTION),
        ),
    ),
    "ui": CommandSpec(
        "Show a cluster, or a scenario as it is played, in the browser.",
        (_CLUSTER, "ui", _SCHEDULER),
    ),
    "evaluate": CommandSpec(
        "Answer recorded scenarios, or check them.",
        (
            click.Argument(["files"], nargs=-1, required=True, type=FILE_PATH),
            *("feature gates", "evaluate"),
        ),
    ),
    "simulate": CommandSpec(
        "Place all pending pods of a cluster, or simulate a scenario.",
        (_CLUSTER, "simulate", "output", _SCHEDULER, _TIMELINE),
    ),
    "snapshot": CommandSpec(
        "Record a cluster into one file, without secrets.", (_CLUSTER, "snapshot")
    ),
    "compare": CommandSpec(
        "Compare clusters, configurations, or scenarios over time.",
        (_FILES, "compare", "duration", "html", "output", "feature gates", "plugins"),
    ),
    "sweep": CommandSpec(
        "Run many simulations, and report means with intervals.",
        (
            click.Argument(["file"], required=False, metavar="[SWEEP]", type=FILE_PATH),
            *("sweep", "duration", "sweep at the end"),
        ),
    ),
    "schema": CommandSpec(
        "Print the JSON Schemas of what -o json prints.",
        (click.Argument(["kind"], required=False),),
    ),
    "completion": CommandSpec(
        "Print the completion script for a shell.",
        (click.Argument(["shell"], type=click.Choice(["bash", "zsh", "fish"])),),
    ),
}


def command(name: str) -> click.Command:
    """Return the command of a name, which exists."""
    spec = COMMANDS[name]

    def run(**given: Any) -> Any:
        function = _imported(f"kubesched.cli.{spec.module or name}:{name}")
        return function(**_taken(spec.parts, given))

    return spec.type_(
        name,
        params=list(_parameters(spec.parts)),
        callback=run,
        help=sections(_HELP)[name].help,
        context_settings=dict(spec.settings),
    )


def _parameters(parts: Sequence[Part]) -> Iterator[click.Parameter]:
    for part in parts:
        if isinstance(part, Group):
            yield from _parameters(part.parts)
        elif isinstance(part, click.Parameter):
            yield part
        elif part.endswith(".txt"):
            yield from (flag for section in sections(part).values() for flag in section.options)
        else:
            yield from sections(_HELP)[part].options


def _taken(parts: Sequence[Part], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a function: the values given, where a group has one for several."""
    taken: dict[str, Any] = {}
    for part in parts:
        if isinstance(part, Group):
            taken[part.parameter] = _imported(part.type_)(**_taken(part.parts, given))
        else:
            names = [str(each.name) for each in _parameters((part,)) if each.expose_value]
            taken |= {name: given[name] for name in names}
    return taken
