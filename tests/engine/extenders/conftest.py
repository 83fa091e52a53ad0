"""An extender as an HTTP server in a thread, whose answers a test sets."""

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

import pytest

from kubestow.cluster.self_signed import SelfSigned
from kubestow.config.extenders import ExtenderConfig
from kubestow.engine.extenders import HttpExtender


class Request(NamedTuple):
    path: str
    content_type: str
    body: Any
    authorization: str | None = None


class ExtenderServer:
    """`answers` are by verb: a document, raw bytes, a status code, or a function
    that writes to the connection itself."""

    def __init__(self, certificate: SelfSigned | None = None) -> None:
        self.requests: list[Request] = []
        self.answers: dict[str, Any] = {}
        self.released = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                content_type = self.headers["Content-Type"]
                authorization = self.headers["Authorization"]
                outer.requests.append(
                    Request(self.path, content_type, json.loads(body), authorization)
                )
                answer = outer.answers[self.path.rpartition("/")[2]]
                if callable(answer):
                    answer(self)
                    return
                code = answer if isinstance(answer, int) else 200
                raw = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                self.send_response(code)
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, format: str, *args: object) -> None: ...

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            block_on_close = False

            def handle_error(self, request: object, client_address: object) -> None:
                """Some tests close connections early."""

        self._server = Server(("127.0.0.1", 0), Handler)
        scheme = "http"
        if certificate is not None:
            self._server.socket = certificate.server_context().wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
            scheme = "https"
        self.url = f"{scheme}://127.0.0.1:{self._server.server_port}/s"
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        self.released.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def never_answer(self, handler: BaseHTTPRequestHandler) -> None:
        self.released.wait(300)

    def answer_forever(self, handler: BaseHTTPRequestHandler) -> None:
        """Endless bytes, each of them before the timeout."""
        handler.send_response(200)
        handler.end_headers()
        while not self.released.wait(0.02):
            handler.wfile.write(b" ")
            handler.wfile.flush()

    def config(self, **options: Any) -> ExtenderConfig:
        return ExtenderConfig(url_prefix=f"{self.url}/", **options)

    def extender(self, *, answer_bytes_max: int = 2**20, **options: Any) -> HttpExtender:
        config = self.config(**options)
        return HttpExtender(config, environ={}, answer_bytes_max=answer_bytes_max)


@pytest.fixture
def make_server() -> Iterator[Callable[..., ExtenderServer]]:
    servers: list[ExtenderServer] = []

    def make(certificate: SelfSigned | None = None) -> ExtenderServer:
        servers.append(ExtenderServer(certificate))
        return servers[-1]

    yield make
    for server in servers:
        server.stop()


@pytest.fixture
def server(make_server: Callable[..., ExtenderServer]) -> ExtenderServer:
    return make_server()
