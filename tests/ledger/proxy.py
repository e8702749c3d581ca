"""A proxy that cuts a connection at a chosen message of the client: before the server sees it, or after it answered."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

_GOODBYE = b"X\0\0\0\4"
"""The last message of a client, which has no answer."""


@dataclass
class Proxy:
    """Counts the client's messages, and cuts the connection before or after message `cut_at`."""

    port: int
    server: tuple[str, int]
    cut_at: int | None = None
    answered: bool = False
    for_good: bool = False
    count: int = 0
    cuts: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def serve(self, client: socket.socket) -> None:
        with suppress(OSError), client, socket.create_connection(self.server) as server:
            if self.for_good and self.cuts:
                return  # as if the server were gone
            client.settimeout(60)
            server.settimeout(60)
            back = threading.Thread(target=self.back, args=(server, client), daemon=True)
            back.start()
            while message := client.recv(2**16):
                if message == _GOODBYE:
                    server.sendall(message)
                    continue
                with self.lock:
                    self.count += 1
                    cut = self.cut_at is not None and (self.count == self.cut_at or (self.for_good and self.cuts))
                    self.cuts += cut
                if cut:
                    if self.answered:
                        client.shutdown(socket.SHUT_WR)  # the answer does not come through
                        server.sendall(message)
                        server.shutdown(socket.SHUT_WR)  # the server answers, reads the end, and goes
                        back.join(30)
                    break
                server.sendall(message)
            for one in (client, server):
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)  # to close it alone would leave it open for the other thread

    @staticmethod
    def back(server: socket.socket, client: socket.socket) -> None:
        with suppress(OSError):
            while answer := server.recv(2**16):
                with suppress(OSError):
                    client.sendall(answer)


@contextmanager
def proxy(server: tuple[str, int]) -> Iterator[Proxy]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        made = Proxy(listening.getsockname()[1], server)

        def accept() -> None:
            with suppress(OSError):
                while True:
                    threading.Thread(target=made.serve, args=(listening.accept()[0],), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield made
        with suppress(OSError):
            listening.shutdown(socket.SHUT_RDWR)
