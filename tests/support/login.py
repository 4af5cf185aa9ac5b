"""A proxy that puts TLS and a login by SCRAM in front of a MongoDB server that has neither.

`python -m tests.support.login` starts a server behind it and prints the address, for
`COUNTERSIGN_TEST_MONGODB_URI`. The clock of this server is a number, as some servers give it.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import secrets
import ssl
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from pathlib import Path

from tests.support.mongo import spawn_mongo_server
from tests.support.wire import Ask, Command, proxied

USER, PASSWORD = "bot", "p@ss/word"
ROUNDS = 4_096

_first: ContextVar[str] = ContextVar("first", default="")
"""The first messages of the login on a connection; each one is served by a task of its own."""
_is_in = ContextVar("is_in", default=False)

_BEFORE = {"hello", "ismaster", "isMaster", "saslStart", "saslContinue"}


@asynccontextmanager
async def behind_login(uri: str, directory: Path) -> AsyncIterator[str]:
    """Run the proxy while the block runs; give the address with the login and the certificate.

    Args:
        uri: Address of a server, with a database.
        directory: For the certificate.
    """
    certificate = directory / "certificate.pem"
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *subject]
    made = [*command, "-keyout", str(certificate), "-out", str(directory / "ca.pem")]
    await asyncio.to_thread(subprocess.run, made, check=True, capture_output=True)
    with certificate.open("a") as file:
        file.write((directory / "ca.pem").read_text())
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate)
    async with proxied(uri, _play, tls=tls) as plain:
        login = "mongodb://bot:p%40ss%2Fword@"
        address, _, options = plain.replace("mongodb://", login).partition("?")
        ours = f"tls=true&tlsCAFile={directory / 'ca.pem'}&authSource=admin"
        yield f"{address}?{options}{'&' if options else ''}{ours}"


async def _play(command: Command, ask: Ask) -> Command:
    name = next(iter(command))
    if not _is_in.get() and name not in _BEFORE:
        text = f"command {name} requires authentication"
        return {"ok": 0.0, "errmsg": text, "code": 13, "codeName": "Unauthorized"}
    if name == "saslStart":
        return _start(command["payload"].decode())
    if name == "saslContinue":
        return _end(command["payload"].decode())
    command.pop("speculativeAuthenticate", None)
    answer = await ask()
    if "localTime" in answer:
        answer["localTime"] = int(answer["localTime"].timestamp() * 1_000)
    if "saslSupportedMechs" in command:
        answer["saslSupportedMechs"] = ["SCRAM-SHA-256"]
    return answer


def _start(payload: str) -> Command:
    bare = payload.removeprefix("n,,")
    salt = base64.b64encode(b"salt of the test").decode()
    nonce = _part(bare, "r") + secrets.token_hex(12)
    answer = f"r={nonce},s={salt},i={ROUNDS}"
    _first.set(f"{bare},{answer}")
    return {"conversationId": 1, "done": False, "payload": answer.encode(), "ok": 1.0}


def _end(payload: str) -> Command:
    bare, _, proof = payload.rpartition(",p=")
    salted = hashlib.pbkdf2_hmac("sha256", PASSWORD.encode(), b"salt of the test", ROUNDS)
    said = f"{_first.get()},{bare}".encode()
    key = _mac(salted, b"Client Key")
    sign = _mac(hashlib.sha256(key).digest(), said)
    right = bytes(byte ^ other for byte, other in zip(key, sign, strict=True))
    is_user = _part(_first.get(), "n") == USER
    if not (is_user and hmac.compare_digest(base64.b64decode(proof), right)):
        text = "Authentication failed."
        return {"ok": 0.0, "errmsg": text, "code": 18, "codeName": "AuthenticationFailed"}
    _is_in.set(True)
    verifier = base64.b64encode(_mac(_mac(salted, b"Server Key"), said))
    return {"conversationId": 1, "done": True, "payload": b"v=" + verifier, "ok": 1.0}


def _part(text: str, name: str) -> str:
    return next(field[2:] for field in text.split(",") if field.startswith(f"{name}="))


def _mac(key: bytes, text: bytes) -> bytes:
    return hmac.digest(key, text, "sha256")


async def _serve() -> None:
    with tempfile.TemporaryDirectory() as name:
        server = await asyncio.to_thread(spawn_mongo_server, Path(name), is_kept=False)
        try:
            async with behind_login(server.uri, Path(name)) as uri:
                sys.stdout.write(f"{uri}\n")
                sys.stdout.flush()
                await asyncio.Event().wait()
        finally:
            server.stop()


if __name__ == "__main__":
    asyncio.run(_serve())
