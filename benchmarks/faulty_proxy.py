"""A proxy in front of a server with the OpenAI API that lets a share of the requests go wrong."""

import hashlib
import json
import random
import socket
import struct
import threading
import time
from collections import Counter
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Literal

import httpx

Fault = Literal["status 500", "status 429", "hang", "truncated", "reset"]
FAULTS: tuple[Fault, ...] = ("status 500", "status 429", "hang", "truncated", "reset")


class FaultyProxy(ThreadingHTTPServer):
    """Passes requests on to the server at `upstream` (a base URL that ends in /v1).

    A share `faulty` of the requests, drawn with `seed`, meets one of `FAULTS` instead; a hang lasts `hang_seconds`, and
    of a truncated answer only the first half is sent. `requests` counts what came, `faults` what went wrong, and
    `delivered` the whole answers, by a hash of their request.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, upstream: str, *, faulty: float, seed: int, hang_seconds: float = 1.0) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.client = httpx.Client(base_url=upstream.removesuffix("/v1"), timeout=120.0)
        self.faulty = faulty
        self.hang_seconds = hang_seconds
        self.requests = 0
        self.faults: Counter[Fault] = Counter()
        self.delivered: Counter[str] = Counter()
        self._chance = random.Random(seed)
        self._lock = threading.Lock()

    @property
    def base_url(self) -> str:
        """What `generator.base_url` is to be."""
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def draw(self) -> Fault | None:
        """Count a request, and say what happens to it."""
        with self._lock:
            self.requests += 1
            if self._chance.random() >= self.faulty:
                return None
            fault = self._chance.choice(FAULTS)
            self.faults[fault] += 1
            return fault

    def note_delivered(self, body: bytes) -> None:
        """Count a whole answer."""
        with self._lock:
            self.delivered[hashlib.sha256(body).hexdigest()] += 1

    def server_close(self) -> None:
        """Close the connections to both sides."""
        super().server_close()
        self.client.close()

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that go away are part of the play."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: FaultyProxy

    def log_message(self, *args: object) -> None:
        """Stay silent."""

    def do_GET(self) -> None:
        """Passed on as it is: the list of models."""
        self._send(*self._upstream("GET", b""))

    def do_POST(self) -> None:
        """Passed on, or gone wrong."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        fault = self.server.draw()
        if fault is None:
            status, answer = self._upstream("POST", body)
            self._send(status, answer)
            if status == 200:
                self.server.note_delivered(body)
            return
        self.close_connection = True
        if fault.startswith("status"):
            self._send(int(fault.split()[1]), json.dumps({"error": {"message": "no luck"}}).encode())
        elif fault == "hang":
            time.sleep(self.server.hang_seconds)
        elif fault == "truncated":
            status, answer = self._upstream("POST", body)
            self._send(status, answer[: len(answer) // 2], promised=len(answer))
        else:
            with suppress(OSError):
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()

    def _upstream(self, method: str, body: bytes) -> tuple[int, bytes]:
        headers = {name: self.headers[name] for name in ("Content-Type", "Authorization") if self.headers[name]}
        try:
            response = self.server.client.request(method, self.path, content=body, headers=headers)
        except httpx.HTTPError as error:
            return 502, json.dumps({"error": {"message": str(error)}}).encode()
        return response.status_code, response.content

    def _send(self, status: int, body: bytes, promised: int | None = None) -> None:
        self.send_response(status)
        if status == 429:
            self.send_header("Retry-After", "0.01")
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body) if promised is None else promised))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()
