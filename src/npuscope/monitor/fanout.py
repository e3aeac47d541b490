"""Asking many daemons at once: each gets one connection and its share of time, and each is accounted for."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import socket
import ssl
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from npuscope.monitor.certificates.reasons import why
from npuscope.monitor.client import NEEDS_CERTIFICATES
from npuscope.monitor.endpoint import Endpoint
from npuscope.monitor.protocol import rpc

PARALLEL = 256
SECONDS = 10.0
SPARE_DESCRIPTORS = 64


@dataclass(frozen=True)
class Question:
    """What one daemon is asked."""

    endpoint: Endpoint
    request: str


@dataclass(frozen=True)
class Answer:
    """What came of it: a reply, or the reason why there is none."""

    endpoint: Endpoint
    reply: str | None
    error: str | None
    seconds: float


@dataclass(frozen=True)
class Limits:
    """How many daemons are asked at a time and how long each may take; all together take
    `seconds * questions / parallel` at worst."""

    parallel: int = PARALLEL
    seconds: float = SECONDS


NORMAL = Limits()


def ask_all(
    questions: Sequence[Question],
    limits: Limits = NORMAL,
    certificates: ssl.SSLContext | None = None,
    tell: Callable[[Answer], None] = lambda answer: None,
) -> list[Answer]:
    """The answers in the order of the questions; `tell` hears each as it comes."""
    return asyncio.run(_ask_all(questions, limits, certificates, tell))


async def _ask_all(
    questions: Sequence[Question],
    limits: Limits,
    certificates: ssl.SSLContext | None,
    tell: Callable[[Answer], None],
) -> list[Answer]:
    slots = asyncio.Semaphore(max(1, min(limits.parallel, _descriptors())))

    async def in_turn(question: Question) -> Answer:
        async with slots:
            answer = await _ask(question, limits.seconds, certificates)
        tell(answer)
        return answer

    return list(await asyncio.gather(*map(in_turn, questions)))


def _descriptors() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return soft - SPARE_DESCRIPTORS if soft != resource.RLIM_INFINITY else PARALLEL * 64


async def _ask(question: Question, seconds: float, certificates: ssl.SSLContext | None) -> Answer:
    began = time.monotonic()
    reply = error = None
    try:
        async with asyncio.timeout(seconds):
            reply = await _exchange(question, certificates)
    except TimeoutError:
        error = f"no answer within {seconds:g} s"
    except ssl.SSLError as fault:
        error = f"no secure connection: {why(fault, 'the daemon')}"
    except OSError as fault:
        error = f"couldn't connect: {_reason(fault)}"
    except asyncio.IncompleteReadError:
        error = "no proper reply: the connection was closed"
    except ValueError as fault:
        error = f"no proper reply: {fault}"
    if reply == rpc.NEEDS_TLS and certificates is None:
        reply, error = None, NEEDS_CERTIFICATES
    return Answer(question.endpoint, reply, error, time.monotonic() - began)


def _reason(fault: OSError) -> str:
    # asyncio's own message repeats the address.
    if fault.errno is not None and fault.errno > 0 and not isinstance(fault, socket.gaierror):
        return os.strerror(fault.errno)
    return fault.strerror or str(fault)


async def _exchange(question: Question, certificates: ssl.SSLContext | None) -> str:
    endpoint = question.endpoint
    addresses = await _resolve(endpoint)
    reader, writer = await _connect(addresses, endpoint.host, certificates)
    try:
        writer.write(rpc.frame(question.request))
        size = rpc.length(await reader.readexactly(rpc.LENGTH.size), rpc.LARGEST_REPLY)
        return (await reader.readexactly(size)).decode()
    finally:
        writer.transport.abort()  # all is said; waiting for a peer's goodbye would cost a slot


async def _connect(
    addresses: Sequence[tuple[str, int]], host: str, certificates: ssl.SSLContext | None
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    fault: OSError | None = None
    for address, port in addresses:
        try:
            name = host if certificates else None
            return await asyncio.open_connection(address, port, ssl=certificates, server_hostname=name)
        except ssl.SSLError:
            raise
        except OSError as error:
            fault = fault or error
    raise fault or OSError("the name has no address")


async def _resolve(endpoint: Endpoint) -> list[tuple[str, int]]:
    """The addresses of a host. Asked in a thread that nobody waits for at the end: a name server may never answer."""
    loop = asyncio.get_running_loop()
    found: asyncio.Future[list[tuple[str, int]]] = loop.create_future()

    def settle(addresses: list[tuple[str, int]], fault: OSError | None) -> None:
        if found.done():  # the question's time was over
            return
        if fault:
            found.set_exception(fault)
        else:
            found.set_result(addresses)

    def look_up() -> None:
        addresses: list[tuple[str, int]] = []
        fault: OSError | None = None
        try:
            addresses = addresses_of(endpoint)
        except OSError as error:
            fault = error
        with contextlib.suppress(RuntimeError):  # the loop is over
            loop.call_soon_threadsafe(settle, addresses, fault)

    if is_numeric(endpoint.host):
        return addresses_of(endpoint)
    threading.Thread(target=look_up, name="resolver", daemon=True).start()
    return await found


def addresses_of(endpoint: Endpoint) -> list[tuple[str, int]]:
    """The addresses behind a host's name, each once, in the resolver's order. Raises OSError when there is none."""
    try:
        found = socket.getaddrinfo(endpoint.host, endpoint.port, type=socket.SOCK_STREAM)
    except UnicodeError:
        raise OSError("this is not a host's name") from None
    return list(dict.fromkeys((str(entry[4][0]), endpoint.port) for entry in found))


def is_numeric(host: str) -> bool:
    """Whether a host is an address already."""
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, host)
        except (OSError, ValueError):
            continue
        return True
    return False
