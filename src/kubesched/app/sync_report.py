"""While objects cannot be read from the API server, the log names the reason now and then.

One line for all kinds: a token that the server refuses concerns every one of them. The single
failures are in the log from verbosity 2 on.

Upstream: staging/src/k8s.io/client-go/tools/cache/reflector.go, DefaultWatchErrorHandler (v1.36)
Differs:  upstream logs every failure of every kind.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from kubesched.client.informers import Informers

_LOOK_SECONDS: Final = 2.0
_PAUSE_SECONDS_MIN: Final = 10.0
_PAUSE_SECONDS_MAX: Final = 300.0
_UNAUTHORIZED: Final = 401
_FORBIDDEN: Final = 403

log = logging.getLogger(__name__)


async def report_failures(informers: Informers, server: str) -> None:
    """Log for ever what has kept informers from reading for two seconds, less and less often.

    Args:
        informers: Follow the server.
        server: Its address.
    """
    pause_seconds, is_second_look = _PAUSE_SECONDS_MIN, False
    while True:
        problem = _problem(informers, server)
        if problem and is_second_look:
            log.warning("%s", problem)
            await asyncio.sleep(pause_seconds)
            pause_seconds = min(2 * pause_seconds, _PAUSE_SECONDS_MAX)
        else:
            pause_seconds = _PAUSE_SECONDS_MIN
            await asyncio.sleep(_LOOK_SECONDS)
        is_second_look = bool(problem)


def _problem(informers: Informers, server: str) -> str:
    """Return what is wrong and what to do about it, "" if nothing is."""
    found = {name: informer.statistics() for name, informer in informers.by_name.items()}
    errors = {name: each.last_error for name, each in found.items() if each.last_error}
    unauthorized, forbidden = (
        [name for name in errors if found[name].last_code == code]
        for code in (_UNAUTHORIZED, _FORBIDDEN)
    )
    unsynced = [name for name, informer in informers.by_name.items() if not informer.has_synced]
    if unauthorized:
        return (
            f"The API server at {server} refuses the credentials: {errors[unauthorized[0]]}; "
            "renew the token or client certificate of the kubeconfig or service account"
        )
    if forbidden:
        return (
            f"The API server at {server} forbids reading {len(forbidden)} of {len(found)} kinds, "
            f"such as {forbidden[0]}: {errors[forbidden[0]]}; bind the user to the cluster roles "
            "system:kube-scheduler and system:volume-scheduler"
        )
    example = next((f", such as {name}: {error}" for name, error in errors.items()), "")
    if unsynced:
        return (
            f"Waiting for the API server at {server}: {len(unsynced)} of {len(found)} kinds are "
            f"not synced{example}"
        )
    if errors:
        return (
            f"Reading from the API server at {server} fails for {len(errors)} of {len(found)} "
            f"kinds{example}"
        )
    return ""
