"""Flags: what they take, and as /flagz shows them."""

from __future__ import annotations

import click
import pytest

from kubesched.cli.flags import shown_flags
from kubesched.cli.run import run

from .cluster import run as run_command


def _shown(*arguments: str) -> dict[str, str]:
    with run.make_context("run", list(arguments)) as ctx:
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
        pytest.param((), "secure-port", "10259", id="number"),
        pytest.param(("--leader-elect=false",), "leader-elect", "false", id="switch"),
        pytest.param((), "dry-run", "false", id="flag"),
        pytest.param(
            ("--feature-gates", "A=true", "--feature-gates", "B=false"),
            *("feature-gates", "A=true,B=false"),
            id="gates",
        ),
        pytest.param(
            ("--authorization-always-allow-paths", "/a,/b"),
            *("authorization-always-allow-paths", "[/a,/b]"),
            id="list",
        ),
    ],
)
def test_flags_are_shown_as_go_shows_them(
    arguments: tuple[str, ...], name: str, expected: str
) -> None:
    """By the names on the command line, defaults of their own included."""
    assert expected == _shown(*arguments)[name]


def test_every_flag_is_shown() -> None:
    """Each that the help lists, once, without dashes."""
    shown = _shown()
    with run.make_context("run", []) as ctx:
        helped = run.get_help(ctx)
    assert "authentication-kubeconfig" in shown
    assert [] == [name for name in shown if f"--{name}" not in helped]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param((), "0.0.0.0", id="default"),  # noqa: S104 - kube-scheduler's
        pytest.param(("--dry-run",), "127.0.0.1", id="dry-run"),
        pytest.param(("--bind-address=::", "--dry-run"), "::", id="dry-run-with-address"),
        pytest.param(("--dry-run", "--bind-address="), "", id="dry-run-with-the-usual-address"),
    ],
)
def test_a_dry_run_listens_on_loopback(arguments: tuple[str, ...], expected: str) -> None:
    """Unless an address is given: nobody else is to reach what runs on a laptop."""
    assert expected == _shown(*arguments)["bind-address"]


@pytest.mark.parametrize("port", ["0", "11990"])
@pytest.mark.parametrize("address", ["foo", "010.1.1.1", "::1%lo", "1.2.3"])
def test_an_address_that_is_none_is_refused_whatever_the_port(address: str, port: str) -> None:
    """kube-scheduler's words and exit code, before anything else is looked at."""
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


@pytest.mark.parametrize(
    "flag",
    [
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
def test_flags_of_kube_scheduler_are_taken(flag: str) -> None:
    """What an installed kube-scheduler is started with need not be taken away."""
    assert flag.partition("=")[0].removeprefix("--") in _shown(flag)


def test_the_version_can_be_asked_of_run() -> None:
    """As kube-scheduler is asked."""
    assert run_command("--version").output == run_command("run", "--version").output
