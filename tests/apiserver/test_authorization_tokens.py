"""Tokens of service accounts."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

from kubesched.apiserver.request import Response
from kubesched.apiserver.status import StatusError
from tests.loops import in_real_time

from .test_server import ask, new_server

NOW = datetime(2024, 5, 1, 10, tzinfo=UTC)
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
ACCOUNT = {"metadata": {"name": "robot"}}


@in_real_time
async def test_tokens_of_service_accounts() -> None:
    """A token works until it expires, or until its account is deleted and perhaps made again."""
    now = [NOW]
    server = new_server(now=lambda: now[0])

    async def token(**spec: object) -> Response:
        asked = {**ACCOUNT, "spec": spec}
        return await ask(server, "POST", f"{ACCOUNTS}/robot/token", asked)

    def name_of(answer: Response) -> str:
        text = json.loads(answer.body)["status"]["token"]
        try:
            return server.user_of({"authorization": f"Bearer {text}"}).name
        except StatusError as error:
            return error.reason

    found: list[object] = [(await token()).status]
    await ask(server, "POST", ACCOUNTS, ACCOUNT)
    found += [(await token(expirationSeconds=599)).status]
    brief, long = await token(expirationSeconds=600), await token()
    found += [name_of(brief), name_of(long)]
    now[0] += timedelta(seconds=600)
    found += [name_of(brief), name_of(long)]
    await ask(server, "DELETE", f"{ACCOUNTS}/robot")
    await ask(server, "POST", ACCOUNTS, ACCOUNT)
    found += [name_of(long), name_of(await token())]
    name, gone = "system:serviceaccount:default:robot", "Unauthorized"
    assert [404, 422, name, name, gone, name, gone, name] == found


@in_real_time
async def test_token_requests() -> None:
    """The answer has what was asked, and the time at which the token expires."""
    server = new_server(now=lambda: NOW)
    await ask(server, "POST", ACCOUNTS, ACCOUNT)
    found = json.loads((await ask(server, "POST", f"{ACCOUNTS}/robot/token", {})).body)
    assert 64 == len(found["status"].pop("token"))
    assert found == {
        "kind": "TokenRequest",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {
            "name": "robot",
            "namespace": "default",
            "creationTimestamp": "2024-05-01T10:00:00Z",
        },
        "spec": {
            "audiences": ["https://kubernetes.default.svc"],
            "expirationSeconds": 3600,
            "boundObjectRef": None,
        },
        "status": {"expirationTimestamp": "2024-05-01T11:00:00Z"},
    }
