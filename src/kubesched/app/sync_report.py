"""While the caches are not synced yet, the log says now and then what is missing, and why.

Upstream: none; reflectors that cannot reach the server say so from verbosity 2 on.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from kubesched.client.informers import Informers

_FIRST_SECONDS: Final = 2.0
_PERIOD_SECONDS: Final = 10.0

log = logging.getLogger(__name__)


async def report_missing(informers: Informers, server: str) -> None:
    """Say what is missing, for ever; to be cancelled when nothing is.

    Args:
        informers: Follow the server.
        server: Its address.
    """
    await asyncio.sleep(_FIRST_SECONDS)
    while True:
        errors = {
            name: informer.statistics().last_error
            for name, informer in informers.by_name.items()
            if not informer.has_synced
        }
        name = next((name for name, error in errors.items() if error), "")
        log.warning(
            "Waiting for the API server at %s: %s of %s kinds are not synced%s",
            server,
            len(errors),
            len(informers.by_name),
            f", such as {name}: {errors[name]}" if name else "",
        )
        await asyncio.sleep(_PERIOD_SECONDS)
