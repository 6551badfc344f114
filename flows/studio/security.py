"""Access control of the studio: allowed callers, hosts and origins, and security headers.

A browser with the token of the address gets a cookie, and needs one of the two for every page. A page of another site cannot use a cookie
that the browser sends along: the host must be ours (a name that was later bound to 127.0.0.1 is not), the browser says which site a
request comes from, and requests that change something must name our origin.
"""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs

HOST = "127.0.0.1"
MOST_BODY = 2_000_000
"""Bytes that a page may send."""
METHODS = ("GET", "HEAD", "POST")
NOT_THIS_SESSION = "Another page asks. The studio answers its own pages alone."
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    # With no-referrer a browser would not name our origin either when a form is sent without the script.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-embedder-policy": "require-corp",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
"""What every answer says, whoever asks for what."""
_STYLES = re.compile(r"<style>(.*?)</style>", re.DOTALL)

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]


@dataclass(frozen=True)
class SessionKeys:
    """Secrets and port of one studio session.

    Attributes:
        port: Where the studio listens.
        token: Of the address.
        cookie: Value of the cookie, which is another secret.
    """

    port: int
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    cookie: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)

    @property
    def host(self) -> str:
        """The only host that a request may name."""
        return f"{HOST}:{self.port}"

    @property
    def origin(self) -> str:
        """The only origin whose requests may change something."""
        return f"http://{self.host}"

    @property
    def address(self) -> str:
        """Address of the studio page, with the token."""
        return f"{self.origin}/?token={self.token}"

    @property
    def cookie_name(self) -> str:
        """Name of the cookie, with the port, because browsers share cookies between ports."""
        return f"skald-studio-{self.port}"


class Gate:
    """ASGI middleware that passes on allowed requests and answers others with an error."""

    def __init__(self, application: Application, keys: SessionKeys) -> None:
        self._application, self._keys = application, keys

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on; only HTTP requests are accepted."""
        if scope["type"] == "lifespan":
            await self._application(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        headers = [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in scope["headers"]]
        with_token = self._has_token(scope)
        if refused := self._refused(scope["method"], headers, with_token=with_token):
            await _answer(send, *refused)
            return

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                kept = list(message["headers"])
                # Only a report says something of its own: the digests of its styles.
                said = {name.decode("latin-1").lower() for name, _ in kept}
                kept += [(name.encode(), value.encode()) for name, value in HEADERS.items() if name not in said]
                if with_token:
                    kept.append((b"set-cookie", self._set_cookie().encode()))
                message = {**message, "headers": kept}
            await send(message)

        await self._application(scope, receive, sent)

    def _refused(self, method: str, headers: list[tuple[str, str]], *, with_token: bool) -> tuple[int, str] | None:
        """Return status and reason for refusing a request, or None."""
        named = {name: [value for one, value in headers if one == name] for name in ("host", "origin", "sec-fetch-site", "content-length")}
        # Another port of this machine is the same site to a browser, and not ours. From elsewhere people come by the address alone.
        elsewhere = any(one not in {"same-origin", "none"} for one in named["sec-fetch-site"]) and not (with_token and method == "GET")
        origins, post = named["origin"], method == "POST"
        reasons = (
            (named["host"] != [self._keys.host], 403, "This is not the address of the studio."),
            (method not in METHODS, 405, "The studio does not answer that."),
            (elsewhere or any(one != self._keys.origin for one in origins) or (post and len(origins) != 1), 403, NOT_THIS_SESSION),
            (not with_token and not self._has_cookie(headers), 403, "Open the address with its token, which the terminal shows."),
            (post and not _is_short(named["content-length"]), 413, "That is too much to send at once."),
        )
        return next(((code, sentence) for refused, code, sentence in reasons if refused), None)

    def _has_token(self, scope: Scope) -> bool:
        """Return whether a request has the token of the session."""
        given = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("token", [])
        return len(given) == 1 and secrets.compare_digest(given[0].encode(), self._keys.token.encode())

    def _has_cookie(self, headers: list[tuple[str, str]]) -> bool:
        """Return whether a request has the cookie of the session."""
        for name, value in headers:
            if name == "cookie":
                try:
                    found = SimpleCookie(value).get(self._keys.cookie_name)
                except CookieError:
                    continue
                if found and secrets.compare_digest(found.value.encode(), self._keys.cookie.encode()):
                    return True
        return False

    def _set_cookie(self) -> str:
        """Return the header value that sets the session's cookie."""
        # Not Secure: there is no TLS on this machine's own address. It ends with the browser, and is worth nothing once the studio ends.
        return f"{self._keys.cookie_name}={self._keys.cookie}; Path=/; HttpOnly; SameSite=Strict"


def _is_short(lengths: list[str]) -> bool:
    """Return whether a content length is given and within the limit."""
    return len(lengths) == 1 and lengths[0].isascii() and lengths[0].isdigit() and int(lengths[0]) <= MOST_BODY


def report_policy(page: str) -> str:
    """Return the content security policy of a report page.

    It allows no script, and only the styles in the page, by their digests.
    """
    digests = [base64.b64encode(hashlib.sha256(style.encode()).digest()).decode() for style in _STYLES.findall(page)]
    styles = " ".join(f"'sha256-{one}'" for one in digests) or "'none'"
    return f"default-src 'none'; style-src {styles}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"


async def _answer(send: Send, status: int, sentence: str) -> None:
    """Send a plain text response."""
    body = f"{status} {sentence}\n".encode()
    headers = [("content-type", "text/plain; charset=utf-8"), ("content-length", str(len(body))), *HEADERS.items()]
    await send({"type": "http.response.start", "status": status, "headers": [(name.encode(), value.encode()) for name, value in headers]})
    await send({"type": "http.response.body", "body": body})
