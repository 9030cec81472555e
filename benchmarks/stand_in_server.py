"""A stand-in for a language model server: the OpenAI API with a fixed service time.

What it shares with a real server: requests are served side by side up to a limit, and wait beyond it. What it does not:
answers do not depend on a model, and the service time depends neither on the prompt nor on how many are served.
"""

import json
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TypeVar

CONTEXT_LENGTH = 2048
"""Words, which stand for tokens here."""

Served = TypeVar("Served", bound=ThreadingHTTPServer)


class StandInServer(ThreadingHTTPServer):
    """Serves on loopback, on a free port where none is named. Each of `slots` requests at once takes `seconds`.

    `answered` counts the answers by prompt.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, *, seconds: float = 0.0, slots: int = 16, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.seconds = seconds
        self.slots = threading.Semaphore(slots)
        self.answered: Counter[str] = Counter()
        self._connections: set[socket.socket] = set()
        self._lock = threading.Lock()

    @property
    def base_url(self) -> str:
        """What `generator.base_url` is to be."""
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def note_answered(self, prompt: str) -> None:
        """Count an answer."""
        with self._lock:
            self.answered[prompt] += 1

    def get_request(self) -> tuple[socket.socket, object]:
        """Accept a connection, and keep it in mind for `server_close`."""
        connection, address = super().get_request()
        with self._lock:
            self._connections.add(connection)
        return connection, address

    def shutdown_request(self, request: socket.socket | tuple[bytes, socket.socket]) -> None:
        """End a connection whose handler is done."""
        if isinstance(request, socket.socket):
            with self._lock:
                self._connections.discard(request)
        super().shutdown_request(request)

    def server_close(self) -> None:
        """Stop listening and drop every connection, as a server that dies does: a kept-alive one would be served on."""
        super().server_close()
        with self._lock:
            connections = list(self._connections)
        for connection in connections:
            with suppress(OSError):  # its client was faster
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that go away are part of the play."""


@contextmanager
def serving(server: Served) -> Iterator[Served]:
    """`server`, serving until the end of the block."""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: StandInServer

    def log_message(self, *args: object) -> None:
        """Stay silent."""

    def do_GET(self) -> None:
        """The list of models."""
        model = {
            "id": "stand-in",
            "object": "model",
            "created": 0,
            "owned_by": "corag",
            "max_model_len": CONTEXT_LENGTH,
        }
        self._reply(200, {"object": "list", "data": [model]})

    def do_POST(self) -> None:
        """A chat completion: the last words of the prompt."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        prompt = body["messages"][-1]["content"]
        if len(prompt.split()) + body["max_tokens"] > CONTEXT_LENGTH:
            self._reply(400, {"error": {"message": f"the context holds {CONTEXT_LENGTH} tokens, not more"}})
            return
        with self.server.slots:
            time.sleep(self.server.seconds)
        self.server.note_answered(prompt)
        self._reply(200, _completion(prompt, body["max_tokens"]))

    def _reply(self, status: int, body: dict[str, object]) -> None:
        sent = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)


def _completion(prompt: str, max_tokens: int) -> dict[str, object]:
    words = prompt.split()[-max_tokens:]
    message = {"role": "assistant", "content": " ".join(words)}
    choice = {"index": 0, "finish_reason": "stop", "logprobs": None, "message": message}
    usage = {"prompt_tokens": len(prompt.split()), "completion_tokens": len(words)}
    return {
        "id": "1",
        "object": "chat.completion",
        "created": 0,
        "model": "stand-in",
        "choices": [choice],
        "usage": usage | {"total_tokens": sum(usage.values())},
    }
