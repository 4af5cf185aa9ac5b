"""A server in memory: requests, decisions and executions as the specification has them."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any, Literal

import rfc8785
from jsonschema import Draft202012Validator

from tests.support.programs import contract

KEY = "csk_AbCdEfGh_" + "0123456789abcdefghijABCDEFGHIJkl" + "012345"
URL = "https://countersign.test"
START = datetime(2026, 11, 23, 10, 0, tzinfo=UTC)
MAX_AGE = 900
FINGERPRINT = (
    *("kind", "preview", "tool", "arguments", "secret", "options", "multiple", "schema"),
    *("tags", "risk", "execution", "people", "requested_for", "repeat"),
)
KEPT = {
    *("type", "properties", "required", "additionalProperties", "items", "enum", "const"),
    *("default", "title", "description", "minimum", "maximum", "exclusiveMinimum"),
    *("exclusiveMaximum", "multipleOf", "minLength", "maxLength", "pattern", "format"),
    *("minItems", "maxItems", "uniqueItems", "oneOf", "anyOf", "$ref", "$defs", "readOnly"),
}
Policy = Literal["ask", "allow", "deny", "nobody"]


class ProblemError(Exception):
    """An answer that says what is wrong."""

    def __init__(self, status: int, code: str, **members: Any) -> None:
        super().__init__(code)
        self.status = status
        self.members = {"code": code, "status": status, **members}


@dataclass(frozen=True)
class Answer:
    """An answer, with the names of its headers in lower case."""

    status: int
    headers: Mapping[str, str]
    content: bytes


@dataclass
class Record:
    """A request, with what nobody is told."""

    shown: dict[str, Any]
    key: str
    fingerprint: str
    run_timeout: int
    attempts: dict[str, dict[str, Any]] = field(default_factory=dict)
    tokens: list[str] = field(default_factory=list)
    consumed: set[str] = field(default_factory=set)
    group: str | None = None
    group_title: str | None = None
    is_delivered: bool = False

    @property
    def is_over(self) -> bool:
        return bool(self.shown["status"] != "pending")


class Server:
    """The door for programs, of one program with one key."""

    def __init__(self, now: Callable[[], float]) -> None:
        """Begin with no request; `now` gives seconds since the start."""
        self.now = now
        self.key = KEY
        self.scopes = {"requests:write", "requests:read", "executions:verify"}
        self.tools = re.compile(".*")
        self.policy: Policy = "ask"
        self.is_frozen = False
        self.next_problems: list[tuple[int, str, int | None]] = []
        """Answers to give before any work: status, code, Retry-After."""
        self.records: dict[str, Record] = {}
        self.seen: list[tuple[str, str]] = []

    # -- the door ---------------------------------------------------------------------------

    def answer(
        self,
        method: str,
        target: str,
        query: Sequence[tuple[str, str]],
        headers: Mapping[str, str],
        body: bytes,
    ) -> Answer:
        """Answer a request at once, whatever `wait` says."""
        self.look()
        operation = contract.operation(method, target)
        self.seen.append((method, target))
        try:
            status, value = self._handle(operation, query, headers, body)
        except ProblemError as problem:
            status = problem.status
            value = {
                "type": f"{URL}/v1/problems/{problem.members['code']}",
                "title": problem.members["code"].replace("-", " "),
                "instance": target,
                **{name: member for name, member in problem.members.items() if member is not None},
            }
        contract.check_answer(operation, status, value)
        sent = {
            "date": format_datetime(self.date, usegmt=True),
            "content-type": "application/json" if status < 400 else "application/problem+json",
            "cache-control": "no-store",
        }
        if value.get("retry_after") is not None:
            sent["retry-after"] = str(value["retry_after"])
        return Answer(status, sent, json.dumps(value).encode())

    def is_held(self, target: str, query: Sequence[tuple[str, str]]) -> int:
        """For how many more seconds an answer is held, unless something happens."""
        self.look()
        asked = dict(query)
        record = self.records.get(target.rpartition("/")[2])
        wait = int(asked.get("wait", 0))
        if record is None or record.is_over:
            return 0
        if "after" in asked and record.shown["revision"] > int(asked["after"]):
            return 0
        return wait

    def _handle(
        self,
        operation: contract.Operation,
        query: Sequence[tuple[str, str]],
        headers: Mapping[str, str],
        body: bytes,
    ) -> tuple[int, dict[str, Any]]:
        if self.next_problems:
            status, code, after = self.next_problems.pop(0)
            raise ProblemError(status, code, retry_after=after)
        parsed = _parsed(headers, body)
        self._check_key(headers, operation.scopes)
        values = contract.parameters(operation, query)
        if "requestBody" in operation.spec:
            schema = operation.spec["requestBody"]["content"]["application/json"]["schema"]
            wrong = contract.faults(parsed, schema)
            if wrong:
                raise ProblemError(422, "invalid", errors=_items(wrong))
        elif body:
            raise contract.BrokenContractError(f"{operation.name} takes no body")
        handlers: dict[str, Callable[[], tuple[int, dict[str, Any]]]] = {
            "createRequest": lambda: self._create(parsed, headers),
            "listRequests": lambda: (200, self._page(values)),
            "getRequest": lambda: (200, self._read(self._of(operation))),
            "cancelRequest": lambda: (200, self._cancel(self._of(operation))),
            "startExecution": lambda: self._start(self._of(operation), parsed),
            "reportResult": lambda: (200, self._result(self._of(operation), parsed)),
            "introspectToken": lambda: (200, self._introspect(parsed)),
        }
        return handlers[operation.name]()

    def _check_key(self, headers: Mapping[str, str], scopes: list[str]) -> None:
        scheme, _, key = headers.get("authorization", "").partition(" ")
        if scheme != "Bearer" or not key:
            raise ProblemError(401, "key-missing")
        if key != self.key:
            raise ProblemError(401, "key-invalid")
        if not self.scopes.issuperset(scopes):
            raise ProblemError(403, "scope-missing")

    # -- what programs do -------------------------------------------------------------------

    def _create(
        self, body: dict[str, Any], headers: Mapping[str, str]
    ) -> tuple[int, dict[str, Any]]:
        key = headers.get("idempotency-key")
        if key is None:
            raise ProblemError(400, "idempotency-key-missing")
        if not re.fullmatch(r"[\x21-\x7e]{1,200}", key) or key.startswith('"'):
            raise contract.BrokenContractError(f"Idempotency-Key: {key}")
        _check_shape(body)
        self._check_scope(body)
        where = body.get("where", {})
        whole = {
            "kind": "approval",
            "multiple": False,
            "execution": "once",
            "repeat": "same",
            **body,
        }
        named = FINGERPRINT if whole.get("tool") else (*FINGERPRINT, "title")
        decided_on = {name: whole.get(name) for name in named}
        fingerprint = hashlib.sha256(rfc8785.dumps([decided_on, where])).hexdigest()
        record, generation = self._newest(key)
        if record is not None and whole["repeat"] == "after_use" and _is_used_up(record):
            record, generation = None, generation + 1
        name = f"{key}\0{generation}".encode()
        identity = "apr_" + hmac.new(b"salt", name, hashlib.sha256).hexdigest()[:32]
        if record is not None:
            identity = record.shown["id"]
            if record.fingerprint != fingerprint:
                raise ProblemError(422, "idempotency-key-reused", request=identity)
            return 200, self._read(record)
        _check_arguments(whole)
        record = Record(
            self._new(identity, whole),
            key,
            fingerprint,
            body.get("run_timeout", 900),
            group=where.get("group"),
            group_title=where.get("group_title"),
        )
        self.records[identity] = record
        self._judge(record)
        return 201, self._read(record)

    def _newest(self, key: str) -> tuple[Record | None, int]:
        """The newest request of a key, and its generation."""
        records = [record for record in self.records.values() if record.key == key]
        return (records[-1] if records else None), max(1, len(records))

    def _check_scope(self, body: dict[str, Any]) -> None:
        if body.get("tool") and not self.tools.fullmatch(body["tool"]):
            raise ProblemError(403, "tool-out-of-scope")
        if body.get("where", {}).get("channel", "C0OPS") != "C0OPS":
            raise ProblemError(403, "channel-out-of-scope")
        if body.get("people"):
            raise ProblemError(403, "people-not-allowed")
        if body.get("requested_for"):
            raise ProblemError(403, "requester-not-allowed")

    def _judge(self, record: Record) -> None:
        if self.policy == "allow":
            self._decide(record, "approved", source="policy", by=[])
        elif self.policy == "deny":
            self._decide(record, "rejected", source="policy", by=[])
        elif self.policy == "nobody":
            record.shown["failure"] = {
                "code": "nobody-can-decide",
                "detail": "No approver is left.",
            }
            self._move(record, status="failed")

    def _new(self, identity: str, body: dict[str, Any]) -> dict[str, Any]:
        mode = body["execution"] if body["kind"] in ("approval", "edit") else "none"
        now = self._iso(self.date)
        echoed = ("title", "why", "tool", "arguments", "schema", "options", "state", "source")
        return {
            "id": identity,
            "kind": body["kind"],
            "status": "pending",
            "revision": 1,
            "url": f"{URL}/r/{identity}",
            **{name: deepcopy(body[name]) for name in echoed if body.get(name) is not None},
            "program": {"id": "prg_ci", "name": "ci"},
            "requesters": ["U0OWNER"],
            "place": {"channel": "C0OPS"},
            "created_at": now,
            "updated_at": now,
            "expires_at": self._iso(
                self.date + timedelta(seconds=body.get("expires_in") or 28_800)
            ),
            "execution": {"mode": mode, "state": "waiting", "generation": 0},
            "metadata": dict(body.get("metadata", {})),
            "a_later_version": {"tells": "more"},
        }

    def _page(self, values: Mapping[str, Any]) -> dict[str, Any]:
        wanted = [
            record
            for record in reversed(self.records.values())
            if record.shown["status"] in values.get("status", [record.shown["status"]])
            and record.shown["execution"]["state"]
            in values.get("execution", [record.shown["execution"]["state"]])
            and values.get("key", record.key) == record.key
            and values.get("group", record.group) == record.group
            and _has(record, values.get("metadata"))
        ]
        filters = hashlib.sha256(
            json.dumps({k: v for k, v in values.items() if k != "cursor"}).encode()
        ).hexdigest()
        if "cursor" in values:
            try:
                last, bound = json.loads(base64.urlsafe_b64decode(values["cursor"]))
            except ValueError:
                raise ProblemError(400, "cursor-invalid") from None
            if bound != filters:
                raise ProblemError(400, "cursor-invalid")
            ids = [record.shown["id"] for record in wanted]
            wanted = wanted[ids.index(last) + 1 :]
        limit = values.get("limit", 20)
        page, more = wanted[:limit], wanted[limit:]
        cursor = None
        if more:
            text = json.dumps([page[-1].shown["id"], filters]).encode()
            cursor = base64.urlsafe_b64encode(text).decode()
        return {"items": [self._present(record) for record in page], "next_cursor": cursor}

    def _cancel(self, record: Record) -> dict[str, Any]:
        if record.shown["status"] not in ("pending", "cancelled"):
            raise ProblemError(409, "not-pending", request=record.shown["id"])
        if not record.is_over:
            self._move(record, status="cancelled")
        return self._present(record)

    def _start(self, record: Record, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        decision, execution = record.shown.get("decision", {}), record.shown["execution"]
        if record.shown["status"] != "approved" or execution["mode"] == "none":
            raise ProblemError(409, "not-approved")
        if body["digest"] != decision["digest"]:
            raise ProblemError(409, "digest-mismatch")
        if body["attempt"] in record.attempts:
            return 200, {**record.attempts[body["attempt"]], "replayed": True}
        is_again = execution["mode"] == "idempotent" and execution["state"] in (
            "started",
            "unknown",
        )
        if execution["state"] != "ready" and not is_again:
            lapsed = execution["state"] == "lapsed"
            raise ProblemError(409, "decision-lapsed" if lapsed else "already-started")
        if self.is_frozen:
            raise ProblemError(409, "frozen")
        generation = execution["generation"] + 1
        token = f"cst_{len(record.tokens):032}"
        deadline = self._iso(
            self.date + timedelta(seconds=body.get("run_timeout") or record.run_timeout)
        )
        execution_id = "exe_" + record.shown["id"][4:]
        execution.update(
            state="started",
            generation=generation,
            runner=body["runner"],
            deadline=deadline,
            started_at=self._iso(self.date),
            execution_id=execution_id,
        )
        record.tokens.append(token)
        record.attempts[body["attempt"]] = {
            "token": token,
            "execution_id": execution_id,
            "generation": generation,
            "deadline": deadline,
            "replayed": False,
            "arguments": deepcopy(decision["arguments"]),
        }
        self._move(record)
        return 201, record.attempts[body["attempt"]]

    def _result(self, record: Record, body: dict[str, Any]) -> dict[str, Any]:
        execution, outcome = record.shown["execution"], body.get("outcome")
        record.is_delivered = record.is_delivered or bool(body.get("delivered"))
        if outcome is None:
            if not body.get("delivered"):
                raise ProblemError(422, "invalid", errors=_items([("/outcome", "is missing")]))
            return self._present(record)
        token = body.get("token")
        if token is not None and token not in record.tokens:
            raise ProblemError(422, "invalid", errors=_items([("/token", "is of no start")]))
        state = execution["state"]
        if state not in ("started", "unknown", "ran", "failed", "not_run"):
            raise ProblemError(409, "not-started")
        if state in ("ran", "failed", "not_run"):
            if outcome != state:
                raise ProblemError(409, "result-known")
            return self._present(record)
        needs_token = token is not None or len(record.tokens) > 1
        if needs_token and token != record.tokens[-1]:
            raise ProblemError(409, "result-known")
        if outcome == "running":
            execution["deadline"] = self._iso(self.date + timedelta(seconds=record.run_timeout))
        else:
            execution["state"] = outcome
            execution["ended_at"] = self._iso(self.date)
        execution["summary"] = body.get("summary")
        self._move(record)
        return self._present(record)

    def _introspect(self, body: dict[str, Any]) -> dict[str, Any]:
        for record in self.records.values():
            if body["token"] != (record.tokens or [""])[-1]:
                continue
            is_started = record.shown["execution"]["state"] == "started"
            is_same = body["digest"] == record.shown["decision"]["digest"]
            if not is_started or not is_same or body["token"] in record.consumed:
                break
            if body.get("consume"):
                record.consumed.add(body["token"])
            return {
                "active": True,
                "request": record.shown["id"],
                "consumed": bool(body.get("consume")),
            }
        return {"active": False}

    # -- what people and time do ------------------------------------------------------------

    def approve(
        self, record: Record, arguments: dict[str, Any] | None = None, reason: str | None = None
    ) -> None:
        """Approve, with these arguments if people have changed them."""
        assert record.shown["kind"] in ("approval", "edit")
        assert arguments is None or record.shown["kind"] == "edit"
        self._decide(record, "approved", arguments=arguments, reason=reason)

    def reject(self, record: Record, reason: str | None = None) -> None:
        """Reject."""
        self._decide(record, "rejected", reason=reason)

    def reply(self, record: Record, answer: Any) -> None:
        """Answer a question."""
        assert record.shown["kind"] in ("question", "choice", "form")
        self._decide(record, "answered", answer=answer)

    def touch(self, record: Record) -> None:
        """Change something that shows, and decides nothing: a vote that is not enough."""
        self._move(record)

    def ready_again(self, record: Record) -> None:
        """People say that it may run again, after its outcome was unknown."""
        assert record.shown["execution"]["state"] == "unknown"
        record.shown["execution"]["state"] = "ready"
        self._move(record)

    def expire(self, record: Record) -> None:
        """Let the time for an answer be over."""
        self._move(record, status="expired")

    def look(self) -> None:
        """Let expire, lapse and become unknown what is due."""
        for record in self.records.values():
            execution = record.shown["execution"]
            if not record.is_over and self._is_past(record.shown["expires_at"]):
                self._move(record, status="expired")
            if execution["state"] == "ready" and self._is_past(
                record.shown["decision"]["usable_until"]
            ):
                execution["state"] = "lapsed"
                self._move(record)
            if execution["state"] == "started" and self._is_past(execution["deadline"]):
                execution["state"] = "unknown"
                self._move(record)

    def _decide(
        self, record: Record, outcome: str, *, source: str = "people", by: Any = None, **more: Any
    ) -> None:
        assert not record.is_over
        shown = record.shown
        decision: dict[str, Any] = {
            "outcome": outcome,
            "source": source,
            "by": [{"id": "U0ADA", "name": "Ada"}] if by is None else by,
            "at": self._iso(self.date),
            "rule": "production",
            "reason": more.get("reason"),
            "edited": False,
        }
        if outcome == "approved":
            asked, decided = shown["arguments"], more.get("arguments")
            run = asked if decided is None else decided
            names = sorted(asked.keys() | run.keys())
            decision |= {
                "tool": shown["tool"],
                "arguments": run,
                "edited": run != asked,
                "changes": [
                    {"path": f"/{name}", "before": asked.get(name), "after": run.get(name)}
                    for name in names
                    if asked.get(name) != run.get(name)
                ],
                "digest": _digest(shown["id"], shown["tool"], run),
                "usable_until": self._iso(self.date + timedelta(seconds=MAX_AGE)),
            }
            if shown["execution"]["mode"] != "none":
                shown["execution"]["state"] = "ready"
        if outcome == "answered":
            decision["answer"] = more["answer"]
        shown["decision"] = decision
        shown["decided_at"] = self._iso(self.date)
        self._move(record, status=outcome)

    def _move(self, record: Record, status: str | None = None) -> None:
        record.shown["revision"] += 1
        record.shown["updated_at"] = self._iso(self.date)
        if status:
            record.shown["status"] = status

    def _read(self, record: Record) -> dict[str, Any]:
        """The present state; reading a decision that has no start is its use."""
        if record.shown["execution"]["mode"] == "none" and "decision" in record.shown:
            record.is_delivered = record.shown["status"] != "rejected"
        return self._present(record)

    def _present(self, record: Record) -> dict[str, Any]:
        shown = deepcopy(record.shown)
        decision = shown.get("decision")
        if decision and decision["outcome"] == "approved":
            in_time = not self._is_past(decision["usable_until"])
            decision["usable"] = in_time and not self.is_frozen
        return shown

    def _of(self, operation: contract.Operation) -> Record:
        record = self.records.get(operation.path["id"])
        if record is None:
            raise ProblemError(404, "not-found")
        return record

    @property
    def date(self) -> datetime:
        """The server's clock, which is not the client's."""
        return START + timedelta(seconds=self.now())

    def _is_past(self, moment: str) -> bool:
        return self.date >= datetime.fromisoformat(moment)

    def _iso(self, moment: datetime) -> str:
        return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _is_used_up(record: Record) -> bool:
    """Whether a key that may be used again makes a new request; a rejection stays for a while."""
    is_over = record.shown["status"] in ("expired", "cancelled", "failed")
    return is_over or record.is_delivered or record.shown["execution"]["state"] == "lapsed"


def _parsed(headers: Mapping[str, str], body: bytes) -> Any:
    if not body:
        return None
    if headers.get("content-type") != "application/json" or "content-encoding" in headers:
        raise ProblemError(415, "unsupported-media-type")
    if len(body) > 256 * 1024:
        raise ProblemError(413, "body-too-large")
    try:
        return contract.strict_json(body)
    except ValueError as error:
        code = "duplicate-member" if str(error) == "duplicate-member" else "malformed-json"
        raise ProblemError(400, code) from None


def _digest(identity: str, tool: str, arguments: Any) -> str:
    call = {"v": "countersign.call/3", "request": identity, "tool": tool, "arguments": arguments}
    return "sha256:" + hashlib.sha256(rfc8785.dumps(call)).hexdigest()


def _items(faults: list[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"pointer": pointer, "detail": detail} for pointer, detail in faults]


def _has(record: Record, wanted: str | None) -> bool:
    name, _, value = (wanted or "").partition("=")
    return wanted is None or record.shown["metadata"].get(name) == value


def _check_shape(body: dict[str, Any]) -> None:
    """Members belong to kinds."""
    kind = body.get("kind", "approval")
    is_call = kind in ("approval", "edit")
    needed = {"choice": {"options"}, "form": {"schema"}, "question": set()}.get(
        kind, {"tool", "arguments"}
    )
    allowed = (
        needed
        | ({"schema"} if kind == "edit" else set())
        | ({"multiple"} if kind == "choice" else set())
    )
    wrong = [(f"/{name}", "is missing") for name in sorted(needed) if body.get(name) is None]
    for name in ("tool", "arguments", "schema", "options", "multiple"):
        if name not in allowed and body.get(name) is not None:
            wrong.append((f"/{name}", f"has no meaning for {kind}"))
    if not is_call and body.get("execution", "none") != "none":
        wrong.append(("/execution", "is none"))
    if not body["title"].isprintable():
        wrong.append(("/title", "has a control character"))
    values = [option["value"] for option in body.get("options") or ()]
    if len(set(values)) < len(values):
        wrong.append(("/options", "has a value twice"))
    if wrong:
        raise ProblemError(422, "invalid", errors=_items(wrong))


def _check_arguments(body: dict[str, Any]) -> None:
    arguments, schema = body.get("arguments"), body.get("schema")
    if any(abs(number) > 2**53 - 1 for number in _integers(arguments)):
        raise ProblemError(422, "number-out-of-range")
    if schema is not None:
        strange = list(_strange(schema, ""))
        if strange:
            raise ProblemError(422, "schema-unsupported", errors=_items(strange))
    if schema is not None and body["kind"] == "edit":
        wrong = [
            ("/arguments" + "".join(f"/{part}" for part in error.absolute_path), error.message)
            for error in Draft202012Validator(schema).iter_errors(arguments)
        ]
        if wrong:
            raise ProblemError(422, "arguments-do-not-fit", errors=_items(wrong))


def _integers(value: Any) -> list[int]:
    if isinstance(value, bool):
        return []
    if isinstance(value, int):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [number for part in inner for number in _integers(part)]


def _strange(schema: Any, at: str) -> list[tuple[str, str]]:
    """Parts of a schema that a form cannot keep."""
    if isinstance(schema, bool):
        return []
    faults = [(f"{at}/{name}", "is not kept") for name in schema if name not in KEPT]
    kinds = schema.get("type", [])
    if isinstance(kinds, list) and kinds and (len(kinds) != 2 or "null" not in kinds):
        faults.append((f"{at}/type", "is one, or one and null"))
    if not isinstance(schema.get("additionalProperties", True), bool):
        faults.append((f"{at}/additionalProperties", "is true or false"))
    for name in ("oneOf", "anyOf"):
        for branch in schema.get(name, ()):
            members = branch.get("properties", {}).values()
            if "$ref" not in branch and not any("const" in member for member in members):
                faults.append((f"{at}/{name}", "is not told apart by a const"))
    for name in ("properties", "$defs"):
        for member, inner in schema.get(name, {}).items():
            faults += _strange(inner, f"{at}/{name}/{member}")
    if "items" in schema:
        faults += _strange(schema["items"], f"{at}/items")
    return faults
