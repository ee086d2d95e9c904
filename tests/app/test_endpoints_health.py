"""Health checks: which ones run, their output, and what it leaves out."""

from __future__ import annotations

from functools import partial

import pytest

from kubesched.app.endpoints import Health, scheduler_health
from kubesched.app.http_exchange import HttpRequest, HttpResponse
from kubesched.framework.structured_log import V2

NOSNIFF = (("X-Content-Type-Options", "nosniff"),)


def ask(health: Health, target: str, method: str = "GET") -> HttpResponse:
    """Ask for a path."""
    path = target.partition("?")[0]
    return health.answer(HttpRequest(method=method, path=path, target=target))


def broken(*names: str) -> Health:
    """Return readyz with the checks a, b and c, of which some fail."""
    problems = {name: f"{name} is bad" if name in names else "" for name in "abc"}
    return Health({"readyz": {name: partial(str, text) for name, text in problems.items()}})


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        pytest.param("/readyz", "ok", id="plain"),
        pytest.param(
            "/readyz?verbose", "[+]a ok\n[+]b ok\n[+]c ok\nreadyz check passed\n", id="verbose"
        ),
        pytest.param(
            "/readyz?verbose=false",
            "[+]a ok\n[+]b ok\n[+]c ok\nreadyz check passed\n",
            id="any value",
        ),
        pytest.param(
            "/readyz?verbose&exclude=b",
            "[+]a ok\n[+]b excluded: ok\n[+]c ok\nreadyz check passed\n",
            id="excluded",
        ),
        pytest.param("/readyz?exclude=x", "ok", id="unknown exclusion says nothing"),
        pytest.param(
            "/readyz?exclude=nosuch&exclude=abc&verbose",
            "[+]a ok\n[+]b ok\n[+]c ok\n"
            'warn: some health checks cannot be excluded: no matches for "abc","nosuch"\n'
            "readyz check passed\n",
            id="unknown exclusions",
        ),
    ],
)
def test_passing_checks(target: str, expected: str) -> None:
    """The body is `ok`, or a list of checks with `?verbose`."""
    answer = ask(broken(), target)
    assert (200, "text/plain; charset=utf-8", NOSNIFF) == (
        answer.status,
        answer.content_type,
        answer.headers,
    )
    assert expected == answer.body.decode()


@pytest.mark.parametrize("target", ["/readyz", "/readyz?verbose"])
def test_failing_checks_have_no_reason(target: str) -> None:
    """The body lists all checks; the reason is in the log only."""
    answer = ask(broken("b"), target)
    assert 500 == answer.status
    expected = "[+]a ok\n[-]b failed: reason withheld\n[+]c ok\nreadyz check failed\n"
    assert expected == answer.body.decode()


def test_the_log_has_the_reasons(caplog: pytest.LogCaptureFixture) -> None:
    """Failures are logged at verbosity 2."""
    with caplog.at_level(V2):
        ask(broken("a", "c"), "/readyz")
    assert "a,c check failed: readyz\n[-]a failed: a is bad\n[-]c failed: c is bad\n" in caplog.text


def test_an_excluded_check_cannot_fail() -> None:
    """A check that is excluded does not run."""
    assert 200 == ask(broken("b"), "/readyz?exclude=b").status


def test_a_single_check_has_its_reason() -> None:
    """The path of a single check returns the reason of its failure."""
    health = broken("b")
    assert b"ok" == ask(health, "/readyz/a").body
    assert () == ask(health, "/readyz/a").headers
    answer = ask(health, "/readyz/b")
    assert (500, b"internal server error: b is bad\n") == (answer.status, answer.body)


def test_a_check_that_raises_has_failed() -> None:
    """The exception's text is the reason."""

    def check() -> str:
        raise OSError("no disk")

    health = Health({"livez": {"disk": check}})
    assert b"internal server error: no disk\n" == ask(health, "/livez/disk").body


def test_observers_get_checks_of_endpoints() -> None:
    """Excluded checks and requests for single checks are not reported."""
    seen: list[tuple[str, str, bool]] = []
    health = Health(
        {"readyz": {"a": lambda: "", "b": lambda: "bad"}}, lambda *told: seen.append(told)
    )
    ask(health, "/readyz")
    ask(health, "/readyz?exclude=a")
    ask(health, "/readyz/a")
    assert [("a", "readyz", True), ("b", "readyz", False), ("b", "readyz", False)] == seen


def test_the_checks_of_a_scheduler() -> None:
    """With an election, healthz and readyz check the lease; livez does not."""
    state = {"lease": "", "stopping": False, "synced": False}
    health = scheduler_health(
        leader_election=lambda: str(state["lease"]),
        is_stopping=lambda: bool(state["stopping"]),
        has_synced=lambda: bool(state["synced"]),
    )
    assert [
        *("/healthz", "/healthz/leaderElection", "/livez", "/livez/ping"),
        *("/readyz", "/readyz/leaderElection", "/readyz/shutdown", "/readyz/sched-handler-sync"),
    ] == health.paths()
    unsynced = ask(health, "/readyz/sched-handler-sync")
    assert b"internal server error: handlers are not fully synchronized\n" == unsynced.body
    state.update(synced=True, stopping=True)
    expected = (
        "[+]leaderElection ok\n[-]shutdown failed: reason withheld\n[+]sched-handler-sync ok\n"
        "readyz check failed\n"
    )
    assert expected == ask(health, "/readyz").body.decode()
    state["lease"] = "failed election to renew leadership on lease kube-scheduler"
    assert 500 == ask(health, "/healthz").status
    assert 200 == ask(health, "/livez").status
    assert b"[+]ping ok\nlivez check passed\n" == ask(health, "/livez?verbose").body


def test_without_an_election_healthz_is_a_ping() -> None:
    """There is nothing to check then."""
    health = scheduler_health(
        leader_election=None, is_stopping=lambda: False, has_synced=lambda: True
    )
    assert b"[+]ping ok\nhealthz check passed\n" == ask(health, "/healthz?verbose").body
