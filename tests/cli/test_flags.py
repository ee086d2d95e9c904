"""Flags: what they take, and as /flagz shows them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import click
import pytest

from kubesched.cli import flags
from kubesched.cli.commands import COMMANDS, Group, Part, command
from kubesched.cli.flags import shown_flags

from .cluster import run as run_command


def _shown(*arguments: str) -> dict[str, str]:
    with command("run").make_context("run", list(arguments)) as ctx:
        assert isinstance(ctx, click.Context)
        return shown_flags(ctx)


@pytest.mark.parametrize(
    ("arguments", "name", "expected"),
    [
        pytest.param(
            ("--leader-elect-lease-duration=90s",),
            *("leader-elect-lease-duration", "1m30s"),
            id="duration",
        ),
        pytest.param((), "config", "", id="not-given"),
        pytest.param(("--config", "a.yaml"), "config", "a.yaml", id="file"),
        pytest.param(("--config=",), "config", "", id="no-file"),
        pytest.param(("--write-config-to=",), "write-config-to", "", id="no-output"),
        pytest.param((), "secure-port", "10259", id="number"),
        pytest.param(("--leader-elect=false",), "leader-elect", "false", id="switch"),
        pytest.param((), "dry-run", "false", id="flag"),
        pytest.param(
            ("--feature-gates", "A=true", "--feature-gates", "B=false"),
            *("feature-gates", ":A=true,:B=false"),
            id="gates",
        ),
        pytest.param(
            ("--feature-gates=kube:A=true",), *("feature-gates", "kube:A=true"), id="component"
        ),
        pytest.param((), "leader-elect-renew-deadline", "10s", id="left to the configuration"),
        pytest.param(("--config", "a.yaml"), "profiling", "true", id="beside a file"),
        pytest.param((), "kube-api-qps", "50", id="deprecated"),
        pytest.param(("--kube-api-burst", "7"), "kube-api-burst", "7", id="deprecated and given"),
        pytest.param(("-v=5",), "v", "5", id="letter with equals sign"),
        pytest.param(("-v", "5"), "v", "5", id="letter"),
        pytest.param(("-v5",), "v", "5", id="letter and number"),
        pytest.param(("--v=5",), "v", "5", id="dashes and letter"),
        pytest.param(("--secure_port=1",), "secure-port", "1", id="underscore"),
        pytest.param(
            ("--allow-metric-labels", "m,l='v'"), *("allow-metric-labels", "[m,l='v']"), id="labels"
        ),
        pytest.param((), "version", "false", id="version"),
        pytest.param(
            ("--authorization-always-allow-paths", "/a,/b"),
            *("authorization-always-allow-paths", "[/a,/b]"),
            id="list",
        ),
    ],
)
def test_flagz(arguments: tuple[str, ...], name: str, expected: str) -> None:
    """Flags have their names of the command line, and include those with defaults."""
    assert expected == _shown(*arguments)[name]


def test_every_flag_is_shown() -> None:
    """Each that the help lists, once, without dashes."""
    shown = _shown()
    run = command("run")
    with run.make_context("run", []) as ctx:
        helped = run.get_help(ctx)
    assert "authentication-kubeconfig" in shown
    assert [] == [name for name in shown if f"--{name}" not in helped]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param((), "0.0.0.0", id="default"),
        pytest.param(("--dry-run",), "127.0.0.1", id="dry-run"),
        pytest.param(("--bind-address=::", "--dry-run"), "::", id="dry-run-with-address"),
        pytest.param(("--dry-run", "--bind-address="), "", id="dry-run-with-the-usual-address"),
    ],
)
def test_a_dry_run_listens_on_loopback(arguments: tuple[str, ...], expected: str) -> None:
    """Unless an address is given, other machines cannot connect."""
    assert expected == _shown(*arguments)["bind-address"]


@pytest.mark.parametrize("port", ["0", "11990"])
@pytest.mark.parametrize("address", ["foo", "010.1.1.1", "::1%lo", "1.2.3"])
def test_invalid_bind_address(address: str, port: str) -> None:
    """It is refused with kube-scheduler's message, for any port."""
    result = run_command("run", "--bind-address", address, "--secure-port", port)
    assert 1 == result.exit_code
    expected = f"Invalid value for '--bind-address': failed to parse IP: '{address}'"
    assert expected in result.output


@pytest.mark.parametrize(
    ("given", "expected"), [("", ""), (" ::1 ", "::1"), ("1.2.3.4", "1.2.3.4")]
)
def test_addresses_are_taken_as_go_takes_them(given: str, expected: str) -> None:
    """Blanks around one do not matter, and an empty one is the default."""
    assert expected == _shown("--bind-address", given)["bind-address"]


# The flags of kube-scheduler 1.36, as its /flagz lists them.
_UPSTREAM = """
allow-metric-labels allow-metric-labels-manifest authentication-kubeconfig
authentication-skip-lookup authentication-token-webhook-cache-ttl
authentication-tolerate-lookup-failure authorization-always-allow-paths authorization-kubeconfig
authorization-webhook-cache-authorized-ttl authorization-webhook-cache-unauthorized-ttl bind-address
cert-dir client-ca-file config contention-profiling disable-http2-serving disabled-metrics
emulated-version feature-gates help http2-max-streams-per-connection kube-api-burst
kube-api-content-type kube-api-qps kubeconfig leader-elect leader-elect-lease-duration
leader-elect-renew-deadline leader-elect-resource-lock leader-elect-resource-name
leader-elect-resource-namespace leader-elect-retry-period log-flush-frequency
log-json-info-buffer-size log-json-split-stream log-text-info-buffer-size log-text-split-stream
logging-format master min-compatibility-version permit-address-sharing permit-port-sharing
pod-max-in-unschedulable-pods-duration profiling requestheader-allowed-names
requestheader-client-ca-file requestheader-extra-headers-prefix requestheader-group-headers
requestheader-uid-headers requestheader-username-headers secure-port
show-hidden-metrics-for-version tls-cert-file tls-cipher-suites tls-curve-preferences
tls-min-version tls-private-key-file tls-sni-cert-key v version vmodule write-config-to
"""


def test_all_flags_of_kube_scheduler_are_there() -> None:
    """Each of them, and few others."""
    shown = set(_shown())
    others = {
        "decision-records",
        "dry-run",
        "leader-elect-allow-removed-locks",
        "plugin",
        "record",
        "seed",
    }
    assert (set(), others) == (set(_UPSTREAM.split()) - shown, shown - set(_UPSTREAM.split()))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--emulated-version=1.35",), "--emulated-version: 1.35 cannot be chosen; write 1.36"),
        (
            ("--min-compatibility-version=kube=1.37",),
            "--min-compatibility-version: 1.37 cannot be chosen; write 1.33 to 1.36",
        ),
        (("--emulated-version=x=1.36",), "--emulated-version: component not registered: x"),
        (("--feature-gates=x:A=true",), "--feature-gates: component not registered: x"),
        (
            ("--feature-gates=kube:GenericWorkload=true,GangScheduling=false",),
            (
                "--feature-gates: set kube feature gates with default empty prefix or kube: prefix"
                " consistently, do not mix use"
            ),
        ),
        (
            ("--disabled-metrics=a,b-c",),
            (
                'metrics.disabledMetrics: Invalid value: ["a","b-c"]: must be fully qualified '
                'metric names matching "^[a-zA-Z_:][a-zA-Z0-9_:]*$", got "b-c"'
            ),
        ),
        (("--allow-metric-labels=a",), "--allow-metric-labels: a must be formatted as key=value"),
        (
            ("--allow-metric-labels-manifest=nowhere",),
            (
                'metrics.allowListMappingManifest: Invalid value: "nowhere": failed to read allow '
                "list manifest: [Errno 2] No such file or directory: 'nowhere'"
            ),
        ),
        (
            ("--log-text-split-stream",),
            "options.text.splitStream: Forbidden: Feature LoggingAlphaOptions is disabled",
        ),
        (
            ("--log-json-info-buffer-size=4Ki",),
            "options.json.infoBufferSize: Forbidden: Feature LoggingAlphaOptions is disabled",
        ),
        (
            ("--vmodule=a=1", "--logging-format=json"),
            "vmodule: Forbidden: Only supported for text log format",
        ),
    ],
)
def test_values_that_kube_scheduler_refuses(arguments: tuple[str, ...], expected: str) -> None:
    """One line names the flag, with exit code 1."""
    result = run_command("run", "--dry-run", "--master=https://127.0.0.1:1", *arguments)
    assert (1, f"kubesched: error: {expected}") == (result.exit_code, result.stderr.strip())


@pytest.mark.parametrize(
    "flag",
    [
        "--tls-sni-cert-key=a,b:c",
        "--tls-curve-preferences=23,29",
        "--emulated-version=kube=1.36",
        "--min-compatibility-version=1.35",
        "--permit-address-sharing",
        "--permit-port-sharing=true",
        "--disable-http2-serving=false",
        "--http2-max-streams-per-connection=100",
        "--log-text-info-buffer-size=4Ki",
        "--log-json-info-buffer-size=0",
        "--show-hidden-metrics-for-version=1.35",
        "--requestheader-allowed-names=a,b",
        "--requestheader-client-ca-file=f",
        "--requestheader-extra-headers-prefix=X-",
        "--requestheader-group-headers=X-G",
        "--requestheader-uid-headers=X-I",
        "--requestheader-username-headers=X-U",
    ],
)
def test_flags_of_kube_scheduler(flag: str) -> None:
    """All of kube-scheduler's flags are accepted."""
    assert flag.partition("=")[0].removeprefix("--") in _shown(flag)


def test_version_of_run() -> None:
    """`run --version` and `--version=raw` print what `--version` does."""
    expected = run_command("--version").output
    assert expected == run_command("run", "--version").output
    assert expected == run_command("run", "--version=raw").output


@pytest.mark.parametrize("table", ["commands.txt", "run_flags.txt", "sandbox_flags.txt"])
def test_every_entry_of_a_table_is_an_option(table: str) -> None:
    """A line that begins with a dash and has a bar is read; no section is empty."""
    text = Path(flags.__file__).with_name(table).read_text(encoding="utf-8")
    written = re.findall(r"^(-.*?) \| ", text, re.MULTILINE)
    sections = flags.sections(table)
    assert all(section.help or section.options for section in sections.values())
    found = [option for section in sections.values() for option in section.options]
    assert [re.findall(r"-[\w-]+", names) for names in written] == [
        [*option.opts, *option.secondary_opts] for option in found
    ]


def _named(parts: Iterable[Part]) -> Iterator[str]:
    for part in parts:
        if isinstance(part, Group):
            yield from _named(part.parts)
        elif isinstance(part, str):
            yield part


def test_every_section_is_used() -> None:
    """Each has the help of a command, or options that one names."""
    named = {name for spec in COMMANDS.values() for name in _named(spec.parts)}
    tables = {name for name in named if name.endswith(".txt")}
    assert {"run_flags.txt", "sandbox_flags.txt"} == tables
    assert named - tables | set(COMMANDS) == set(flags.sections("commands.txt"))
