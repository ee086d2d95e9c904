"""Writes to a server on a file until it is killed, and tells what it tries and what is done."""

from __future__ import annotations

import asyncio
import os
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random

from kubesched.apiserver.durable import DurableServer
from kubesched.apiserver.plain import encode
from kubesched.apiserver.request import ApiRequest
from kubesched.apiserver.server import ADMIN

_WRITERS = 8
_MAPS = "/api/v1/namespaces/default/configmaps"
_HEADERS = {"content-type": "application/json"}


def run(path: Path, seed: int, sender: Connection) -> None:
    """Write on, with eight writers at once; `sender` gets lines of text, not messages."""

    async def main() -> None:
        server, output = DurableServer(path), sender.fileno()
        os.write(output, b"ready\n")
        await asyncio.gather(*(_write(server, one, seed, output) for one in range(_WRITERS)))

    asyncio.run(main())


async def _write(server: DurableServer, writer: int, seed: int, output: int) -> None:
    random, number = Random(seed), 0
    alive: list[str] = []
    while True:
        choice = random.random()
        value: str | None
        if choice < 0.5 or not alive:
            number += 1
            name = f"w{writer}-{seed}-{number}"
            alive.append(name)
            method, path, value = "POST", _MAPS, str(number)
        else:
            name = random.choice(alive)
            path = f"{_MAPS}/{name}"
            method, value = ("DELETE", None) if choice > 0.9 else ("PUT", str(random.random()))
        body = {"metadata": {"name": name}, "data": {"value": value}}
        sent = b"" if value is None else encode(body)
        os.write(output, f"try {name} {value}\n".encode())
        answer = await server.handle(ApiRequest(method, path, {}, _HEADERS, sent, ADMIN))
        if value is None:
            alive.remove(name)
        assert answer.status < 300, answer.body
        os.write(output, f"done {name} {value}\n".encode())
