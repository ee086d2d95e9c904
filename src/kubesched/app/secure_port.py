"""The secure port, put together from its flags: certificates, who may ask, and what is answered.

    async with secure_port(options, connections, endpoints, ...) as port:
        ...                          # port is None if the flags switch it off

Upstream: staging/src/k8s.io/apiserver/pkg/server/options/{authentication,authorization,serving}.go
          (v1.36)
Rejects:  certificates, versions, suites and paths that cannot be used.
Differs:  nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Final

import msgspec
from msgspec.structs import replace

from kubesched.app.access import Access
from kubesched.app.authentication import Authenticator
from kubesched.app.authorization import AllowedPaths, Authorizer, SubjectAccessReviews
from kubesched.app.cluster_authentication import (
    NOBODY,
    Authorities,
    ClusterAuthentication,
    LookupFailedError,
    authorities_of_file,
)
from kubesched.app.endpoints import Endpoints
from kubesched.app.options import AccessOptions, ServingOptions
from kubesched.app.reviews import Retries
from kubesched.app.secure_serving import SecureServing
from kubesched.app.serving_certificates import ServingCertificateError, serving_pair
from kubesched.app.serving_tls import ask_for_certificates, serving_context
from kubesched.app.token_reviews import TokenReviews
from kubesched.client.requests import Rest

log: Final = logging.getLogger(__name__)

_TOLERATED: Final = """\
Error looking up in-cluster authentication configuration: %s
Continuing without authentication configuration. This may treat all requests as anonymous.
To require authentication configuration lookup to succeed, set \
--authentication-tolerate-lookup-failure=false"""


class Asked(msgspec.Struct, frozen=True):
    """The API servers that say who somebody is and what they may do.

    Attributes:
        authentication: None ignores all tokens, and reads no authorities.
        authorization: None refuses everything that is not always allowed.
    """

    authentication: Rest | None
    authorization: Rest | None


class Surroundings(msgspec.Struct, frozen=True):
    """Clocks and dice.

    Attributes:
        moment: The present, with its time zone.
        random: Draws pauses between attempts.
        key: Up to 64 random bytes; makes kept tokens useless to whoever reads them.
    """

    moment: Callable[[], datetime]
    random: Random
    key: bytes


@asynccontextmanager
async def secure_port(
    serving: ServingOptions,
    access: AccessOptions,
    asked: Asked,
    endpoints: Endpoints,
    surroundings: Surroundings,
    *,
    port: int | None = None,
) -> AsyncIterator[SecureServing | None]:
    """Serve on the secure port inside of an `async with`.

    Args:
        serving: Where, and with which certificate.
        access: Who may ask.
        asked: Who knows that.
        endpoints: Answers those who may.
        surroundings: Clocks and dice.
        port: Instead of the flag's; 0 for one that the system chooses.

    Yields:
        The open port; None if the flag is 0.

    Raises:
        ServingCertificateError, ServingTlsError: The port's own certificate or TLS is no good.
        LookupFailedError: The cluster's authorities cannot be read, and that is not tolerated.
        ValueError: Something else in the flags is no good.
        OSError: Nobody can listen there.
    """
    if not serving.secure_port and port is None:
        yield None
        return
    pair = serving_pair(serving, surroundings.moment)
    context = serving_context(pair, serving.tls_min_version, serving.tls_cipher_suites)
    own = _own_authorities(access)
    ask_for_certificates(context, own.pem)
    cluster = await _cluster(access, asked, lambda new: ask_for_certificates(context, new.pem))

    def authorities() -> Authorities:
        known = NOBODY if cluster is None else cluster.authorities
        if not own.client:
            return known
        return replace(known, client=own.client, client_pem=own.client_pem)

    handler = _access(access, asked, endpoints, surroundings, authorities).handle
    listens_at = serving.secure_port if port is None else port
    refreshing = None if cluster is None else asyncio.ensure_future(cluster.run())
    try:
        async with SecureServing(handler, context, serving.bind_address, listens_at) as opened:
            yield opened
    finally:
        if refreshing is not None:
            refreshing.cancel()
            await asyncio.gather(refreshing, return_exceptions=True)


def _own_authorities(access: AccessOptions) -> Authorities:
    if not access.client_ca_file:
        return NOBODY
    try:
        return authorities_of_file(Path(access.client_ca_file).read_text(encoding="ascii"))
    except (OSError, ValueError) as error:
        raise ServingCertificateError(f"unable to load client CA provider: {error}") from None


async def _cluster(
    access: AccessOptions, asked: Asked, on_change: Callable[[Authorities], None]
) -> ClusterAuthentication | None:
    """Return the cluster's authorities, read once; None if they are not to be read."""
    if asked.authentication is None or access.authentication_skip_lookup:
        return None
    cluster = ClusterAuthentication(asked.authentication, on_change)
    try:
        await cluster.refresh()
    except LookupFailedError as error:
        if not access.tolerate_lookup_failure:
            raise
        for line in (_TOLERATED % error).splitlines():
            log.warning("%s", line)
    return cluster


def _access(
    access: AccessOptions,
    asked: Asked,
    endpoints: Endpoints,
    surroundings: Surroundings,
    authorities: Callable[[], Authorities],
) -> Access:
    now = asyncio.get_running_loop().time
    retries = Retries(surroundings.random)
    tokens = reviews = None
    if asked.authentication is not None:
        keep_seconds = access.token_cache_seconds
        tokens = TokenReviews(asked.authentication, retries, now, keep_seconds, surroundings.key)
    if asked.authorization is not None:
        reviews = SubjectAccessReviews(asked.authorization, retries, now)
    return Access(
        Authenticator(authorities, tokens, surroundings.moment),
        Authorizer(AllowedPaths(access.always_allow_paths), reviews),
        endpoints.answer,
    )
