"""Ask an ASGI application without a network."""

import asyncio
import json
from typing import NamedTuple
from urllib.parse import urlencode


class Answer(NamedTuple):
    status: int
    headers: dict
    text: str

    @property
    def json(self):
        return json.loads(self.text)

    @property
    def lines(self):
        return [json.loads(line) for line in self.text.splitlines()]


def ask(app, path, query=(), headers=None, *, host="127.0.0.1:8765"):
    """The answer to a GET; `query` is a dictionary, pairs, or text as it stands in an address."""
    text = query if isinstance(query, str) else urlencode(query)
    told = {"host": host, **(headers or {})}
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET",
        "scheme": "http", "path": path, "raw_path": path.encode(), "root_path": "",
        "query_string": text.encode(), "server": ("127.0.0.1", 8765), "client": ("127.0.0.1", 1),
        "headers": [(k.encode(), v.encode()) for k, v in told.items()],
    }  # fmt: skip
    sent = []

    async def run():
        waits = asyncio.Event()  # nobody hangs up

        async def receive():
            await waits.wait()

        async def send(message):
            sent.append(message)

        await app(scope, receive, send)

    asyncio.run(run())
    start = sent[0]
    body = b"".join(message.get("body", b"") for message in sent[1:])
    found = {k.decode(): v.decode() for k, v in start["headers"]}
    return Answer(start["status"], found, body.decode())
