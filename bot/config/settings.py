"""Settings: every environment variable of the bot, checked before anything starts.

The environment is passed as a mapping. All faults are reported at once, each with its variable and
its remedy. Values that may be secret are never repeated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from bot.config import values
from bot.config.stores import DATA_DIR, make_storage, seal_of
from bot.config.values import Log
from bot.errors import InvalidSettingsError, SettingsError
from bot.ports.people import CHANNEL
from bot.redaction.rules import NO_RULES, MaskRules
from bot.stores import Stores
from storage.chain import Seal

OURS = "COUNTERSIGN_"
"""Prefix of the bot's variables. An unknown variable with this prefix is an error."""
FOR_TESTS = "COUNTERSIGN_TEST_"
"""Prefix of the test suite's variables, which the bot ignores."""
OF_PROGRAMS = ("COUNTERSIGN_URL", "COUNTERSIGN_KEY", "COUNTERSIGN_KEY_FILE")
"""Variables of programs that ask, which may run in the same shell; the bot ignores them."""


_WHO_DECIDES = (
    "set COUNTERSIGN_POLICY to a policy file; or list user IDs (U…) and user group IDs (S…), "
    "such as COUNTERSIGN_APPROVERS=U0ADALINDQ,S0ONCALL01; or use channel together with "
    "COUNTERSIGN_CHANNELS"
)
IN_A_POLICY = {
    "COUNTERSIGN_APPROVERS": "groups: {approvers: {users: [U…], usergroups: [S…]}}, and "
    "defaults: {approve: [{from: [approvers]}]}",
    "COUNTERSIGN_CHANNELS": "when: {channel: [C…]}",
    "COUNTERSIGN_SELF_APPROVAL": "exclude: []",
    "COUNTERSIGN_EXCLUDE_EDITORS": "exclude: [requesters, editors]",
    "COUNTERSIGN_REMIND_AFTER": "remind: {after: 15m, times: 6}",
    "COUNTERSIGN_EXPIRE_AFTER": "expires: 8h",
    "COUNTERSIGN_ESCALATE_AFTER": "escalate: [{after: 1h, add: [backups]}]",
    "COUNTERSIGN_ESCALATE_TO": "groups: {backups: {users: [U…]}}",
    "COUNTERSIGN_MAX_AGE": "max_age: 15m",
}
"""The settings that a policy file replaces, each with its text in the file."""

GROUPS: Mapping[str, tuple[str, ...]] = {
    "Slack": ("SLACK_BOT_TOKEN", "SLACK_APP_TOKEN", "SLACK_SIGNING_SECRET", "SLACK_API_URL"),
    "Agents and models": (
        "COUNTERSIGN_AGENT",
        "COUNTERSIGN_AGENTS_FILE",
        "COUNTERSIGN_MODEL",
        "COUNTERSIGN_MODEL_TIMEOUT",
        "COUNTERSIGN_TOOL_TIMEOUT",
    ),
    "Policy": ("COUNTERSIGN_POLICY", "COUNTERSIGN_FREEZE_FILE"),
    "Approvers without a policy file": tuple(IN_A_POLICY),
    "Storage": (
        "COUNTERSIGN_DATA_DIR",
        "MONGODB_URI",
        "COUNTERSIGN_MONGO_DRIVER",
        "COUNTERSIGN_RETENTION",
    ),
    "Secrets, masks and audit": (
        "COUNTERSIGN_SECRETS_DIR",
        "COUNTERSIGN_REDACT",
        "COUNTERSIGN_AUDIT_KEY",
    ),
    "Messages to people": (
        "COUNTERSIGN_LANGUAGE",
        "COUNTERSIGN_COMPANY",
    ),
    "HTTP server, log and traces": (
        "COUNTERSIGN_HOST",
        "COUNTERSIGN_PORT",
        "COUNTERSIGN_METRICS_PORT",
        "COUNTERSIGN_LOG",
        "COUNTERSIGN_TRACES",
    ),
    "API for programs": (
        "COUNTERSIGN_API_PORT",
        "COUNTERSIGN_API_HOST",
        "COUNTERSIGN_API_URL",
        "COUNTERSIGN_API_PROXIES",
        "COUNTERSIGN_CALLBACK_PRIVATE",
        "COUNTERSIGN_CALLBACK_PROXY",
        "COUNTERSIGN_PERSONAL_KEYS",
    ),
}
"""The settings by subject, in the order of the reference page."""


class Settings(BaseModel):
    """The operator's settings. Secrets stay hidden in reprs; the rest may be shown."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", validate_default=True, hide_input_in_errors=True
    )

    slack_bot_token: Annotated[
        SecretStr,
        BeforeValidator(
            values.token("xoxb-", "copy the Bot User OAuth Token from OAuth & Permissions")
        ),
    ] = Field(
        alias="SLACK_BOT_TOKEN",
        description="The bot token of the Slack app, for all calls of Slack's Web API. Required.",
        examples=["xoxb-1-2-abc"],
        json_schema_extra={"values": "`xoxb-` with letters, digits and `-`"},
    )
    slack_app_token: Annotated[
        SecretStr | None,
        BeforeValidator(
            values.token("xapp-", "make an app-level token on the page Basic Information")
        ),
    ] = Field(
        default=None,
        alias="SLACK_APP_TOKEN",
        description=(
            "The app-level token. If it is set, the bot uses Socket Mode; otherwise it uses HTTP."
        ),
        examples=["xapp-1-A-2-abc"],
        json_schema_extra={"values": "`xapp-` with letters, digits and `-`"},
    )
    slack_signing_secret: SecretStr | None = Field(
        default=None,
        alias="SLACK_SIGNING_SECRET",
        description=(
            "Proves that HTTP requests come from Slack. Required without `SLACK_APP_TOKEN`."
        ),
        examples=["0123456789abcdef0123456789abcdef"],
        json_schema_extra={"values": "16 to 200 printable ASCII characters"},
    )
    slack_api_url: Annotated[str, BeforeValidator(values.api_url)] = Field(
        default="https://slack.com/api/",
        alias="SLACK_API_URL",
        description="The address of Slack's Web API. Change it only to use the sandbox.",
        examples=["https://slack.com/api/"],
        json_schema_extra={"values": "an `https` address; `http` only on this machine"},
    )
    mongodb_uri: Annotated[SecretStr | None, BeforeValidator(values.mongodb_uri)] = Field(
        default=None,
        alias="MONGODB_URI",
        description="The MongoDB database. If it is not set, the bot uses the embedded database.",
        examples=["mongodb://bot:secret@db1,db2,db3/countersign?replicaSet=rs0"],
        json_schema_extra={
            "values": "an address that begins with `mongodb://` or `mongodb+srv://`"
        },
    )
    data_dir: Annotated[Path, BeforeValidator(values.data_dir)] = Field(
        default=DATA_DIR,
        alias="COUNTERSIGN_DATA_DIR",
        description="The directory of the embedded database. Only one process can use it.",
        examples=["/var/lib/countersign"],
        json_schema_extra={"values": "a path; `~` is not expanded"},
    )
    mongo_driver: Annotated[
        Literal["motor", "pymongo"], BeforeValidator(values.one_of("motor", "pymongo"))
    ] = Field(
        default="motor",
        alias="COUNTERSIGN_MONGO_DRIVER",
        description="The library that talks to MongoDB: `motor`, or the async client of `pymongo`.",
        examples=["pymongo"],
        json_schema_extra={"values": "`motor` or `pymongo`"},
    )
    agent: Annotated[
        str,
        BeforeValidator(values.matching(values.AGENT_PATH, values.AGENT_REMEDY)),
    ] = Field(
        default="bot.demo:build",
        alias="COUNTERSIGN_AGENT",
        description=(
            "The agent: an agent, a dictionary of agents by channel, or a function that builds one."
        ),
        examples=["helpdesk.agent:build"],
        json_schema_extra={"values": "`module:attribute`"},
    )
    agents_file: Annotated[Path | None, BeforeValidator(values.optional_path)] = Field(
        default=None,
        alias="COUNTERSIGN_AGENTS_FILE",
        description=(
            "A file that names several agents and their channels, such as `countersign.yaml`."
        ),
        examples=["countersign.yaml"],
        json_schema_extra={"values": "a path; not together with `COUNTERSIGN_AGENT`"},
    )
    model: Annotated[
        str,
        BeforeValidator(
            values.matching(
                r"demo|[a-z][a-z0-9-]*:\S+", "write demo, or provider:model such as openai:gpt-5"
            )
        ),
    ] = Field(
        default="demo",
        alias="COUNTERSIGN_MODEL",
        description="The model of the agents. `demo` is a set of rules that needs no key.",
        examples=["openai:gpt-5"],
        json_schema_extra={"values": "`demo` or `provider:model`"},
    )
    model_timeout: Annotated[timedelta, BeforeValidator(values.duration)] = Field(
        default=timedelta(minutes=2),
        alias="COUNTERSIGN_MODEL_TIMEOUT",
        description="How long the model may send nothing before its request is cancelled.",
        examples=["90s"],
        json_schema_extra={"values": "`1s` to `30d`"},
    )
    tool_timeout: Annotated[timedelta, BeforeValidator(values.duration)] = Field(
        default=timedelta(minutes=15),
        alias="COUNTERSIGN_TOOL_TIMEOUT",
        description="How long a call may run, unless its tool declares a `timeout`.",
        examples=["2m"],
        json_schema_extra={"values": "`1s` to `30d`"},
    )
    host: Annotated[str, BeforeValidator(values.host)] = Field(
        default="127.0.0.1",
        alias="COUNTERSIGN_HOST",
        description=(
            "The address on which the HTTP server listens. `0.0.0.0` accepts other machines."
        ),
        examples=["0.0.0.0"],  # noqa: S104 - shown in the reference
        json_schema_extra={"values": "an address or a host name"},
    )
    port: Annotated[int, BeforeValidator(values.port)] = Field(
        default=3000,
        alias="COUNTERSIGN_PORT",
        description="The port of `/slack/events`, `/healthz` and `/readyz`. `0` picks a free port.",
        examples=["8080"],
        json_schema_extra={"values": "`0` to `65535`"},
    )
    metrics_port: Annotated[int | None, BeforeValidator(values.optional_port)] = Field(
        default=None,
        alias="COUNTERSIGN_METRICS_PORT",
        description=(
            "The port of `/metrics` for Prometheus. If it is not set, no metrics are served."
        ),
        examples=["9464"],
        json_schema_extra={"values": "`0` to `65535`"},
    )
    api_port: Annotated[int | None, BeforeValidator(values.optional_port)] = Field(
        default=None,
        alias="COUNTERSIGN_API_PORT",
        description=(
            "The port of the API for programs. Without it, or without a key, no API is served."
        ),
        examples=["8443"],
        json_schema_extra={"values": "`0` to `65535`"},
    )
    api_host: Annotated[str, BeforeValidator(values.host)] = Field(
        default="127.0.0.1",
        alias="COUNTERSIGN_API_HOST",
        description="The address on which the API listens. `0.0.0.0` accepts other machines.",
        examples=["0.0.0.0"],  # noqa: S104 - shown in the reference
        json_schema_extra={"values": "an address or a host name"},
    )
    api_url: Annotated[str, BeforeValidator(values.public_url)] = Field(
        default="",
        alias="COUNTERSIGN_API_URL",
        description=(
            "The public address of the API, for links. If it is not set, the address on this "
            "machine."
        ),
        examples=["https://countersign.example.com"],
        json_schema_extra={"values": "an `https` address; `http` only on this machine"},
    )
    api_proxies: Annotated[tuple[str, ...], BeforeValidator(values.networks)] = Field(
        default=(),
        alias="COUNTERSIGN_API_PROXIES",
        description="Networks of proxies whose `X-Forwarded-For` tells the address of a program.",
        examples=["10.0.0.0/8"],
        json_schema_extra={"values": "networks, separated by commas"},
    )
    callback_private: Annotated[tuple[str, ...], BeforeValidator(values.networks)] = Field(
        default=(),
        alias="COUNTERSIGN_CALLBACK_PRIVATE",
        description="Networks that webhooks may reach although they are not public.",
        examples=["10.20.0.0/16"],
        json_schema_extra={"values": "networks, separated by commas"},
    )
    callback_proxy: Annotated[str | None, BeforeValidator(values.proxy_url)] = Field(
        default=None,
        alias="COUNTERSIGN_CALLBACK_PROXY",
        description=(
            "An HTTP proxy for webhooks. It gets host names, not addresses, so it must refuse "
            "private addresses itself. Only `https` goes through it, and "
            "`COUNTERSIGN_CALLBACK_PRIVATE` has no effect."
        ),
        examples=["http://proxy.example.com:3128"],
        json_schema_extra={"values": "an `http` or `https` address without a login"},
    )
    personal_keys: Annotated[bool, BeforeValidator(values.yes_or_no)] = Field(
        default=False,
        alias="COUNTERSIGN_PERSONAL_KEYS",
        description=(
            "If `yes`, members make keys for their own programs in Home. Such a program is called "
            "`personal/USER/NAME`, and asks in their direct messages and in channels that they are "
            "in."
        ),
        examples=["yes"],
        json_schema_extra={"values": "`yes` or `no`"},
    )
    traces: Annotated[Literal["off", "otlp"], BeforeValidator(values.one_of("off", "otlp"))] = (
        Field(
            default="off",
            alias="COUNTERSIGN_TRACES",
            description=(
                "`otlp` sends OpenTelemetry traces to the receiver that variables `OTEL_…` name."
            ),
            examples=["otlp"],
            json_schema_extra={"values": "`off` or `otlp`"},
        )
    )
    remind_after: Annotated[timedelta, BeforeValidator(values.duration)] = Field(
        default=timedelta(minutes=15),
        alias="COUNTERSIGN_REMIND_AFTER",
        description="Time from a request to its first reminder.",
        examples=["30m"],
        json_schema_extra={"values": "`1s` to `30d`"},
    )
    expire_after: Annotated[timedelta, BeforeValidator(values.duration)] = Field(
        default=timedelta(hours=8),
        alias="COUNTERSIGN_EXPIRE_AFTER",
        description=(
            "Time after which an undecided request ends and nothing runs; longer than the "
            "reminder. In a policy file, at least `1m`."
        ),
        examples=["2d"],
        json_schema_extra={"values": "`1s` to `30d`"},
    )
    escalate_after: Annotated[timedelta | None, BeforeValidator(values.optional_duration)] = Field(
        default=None,
        alias="COUNTERSIGN_ESCALATE_AFTER",
        description=(
            "Time from a request until backups can decide. If it is not set, they never can."
        ),
        examples=["1h"],
        json_schema_extra={"values": "`1s` to `30d`"},
    )
    escalate_to: Annotated[tuple[str, ...], BeforeValidator(values.backups)] = Field(
        default=(),
        alias="COUNTERSIGN_ESCALATE_TO",
        description="The backup approvers. They can decide after `COUNTERSIGN_ESCALATE_AFTER`.",
        examples=["S0ONCALL01"],
        json_schema_extra={"values": "user ids, user group ids and `channel`, separated by commas"},
    )
    max_age: Annotated[timedelta, BeforeValidator(values.max_age)] = Field(
        default=timedelta(minutes=15),
        alias="COUNTERSIGN_MAX_AGE",
        description=(
            "How long after its approval a call may start. After that, approvers are asked again."
        ),
        examples=["30m"],
        json_schema_extra={"values": "`1m` to `24h`"},
    )
    exclude_editors: Annotated[bool, BeforeValidator(values.yes_or_no)] = Field(
        default=False,
        alias="COUNTERSIGN_EXCLUDE_EDITORS",
        description="If `yes`, a person other than the editor must approve an edited call.",
        examples=["yes"],
        json_schema_extra={"values": "`yes` or `no`"},
    )
    policy: Annotated[Path | None, BeforeValidator(values.optional_path)] = Field(
        default=None,
        alias="COUNTERSIGN_POLICY",
        description="The policy file: who approves what. Set this or `COUNTERSIGN_APPROVERS`.",
        examples=["policy.yaml"],
        json_schema_extra={"values": "a path; `~` is not expanded"},
    )
    freeze_file: Annotated[Path | None, BeforeValidator(values.optional_path)] = Field(
        default=None,
        alias="COUNTERSIGN_FREEZE_FILE",
        description=(
            "While this file exists, the process starts no call and begins no turn. Use a local "
            "disk; if its directory is missing or unreadable, the file counts as existing."
        ),
        examples=["/run/countersign/freeze"],
        json_schema_extra={"values": "a path; `~` is not expanded"},
    )
    approvers: tuple[str, ...] = Field(
        default=(),
        alias="COUNTERSIGN_APPROVERS",
        description="Without a policy file: who can approve. There is no value for everyone.",
        examples=["U0ADALINDQ,S0ONCALL01"],
        json_schema_extra={"values": "user ids, user group ids and `channel`, separated by commas"},
    )
    channels: Annotated[tuple[str, ...], BeforeValidator(values.channels)] = Field(
        default=(),
        alias="COUNTERSIGN_CHANNELS",
        description=(
            "The only channels in which calls can be approved. Required if `channel` approves."
        ),
        examples=["C0OPSOPS01"],
        json_schema_extra={"values": "channel ids, separated by commas"},
    )
    self_approval: Annotated[bool, BeforeValidator(values.yes_or_no)] = Field(
        default=False,
        alias="COUNTERSIGN_SELF_APPROVAL",
        description=(
            "If `yes`, requesters can approve their own requests. This removes a protection."
        ),
        examples=["yes"],
        json_schema_extra={"values": "`yes` or `no`"},
    )
    audit_key: Annotated[SecretStr | None, BeforeValidator(values.audit_key)] = Field(
        default=None,
        alias="COUNTERSIGN_AUDIT_KEY",
        description="The key that seals the audit. Earlier keys may follow, separated by spaces.",
        examples=["0123456789abcdef0123456789abcdef"],
        json_schema_extra={"values": "keys of at least 32 bytes"},
    )
    retention: Annotated[timedelta | None, BeforeValidator(values.retention)] = Field(
        default=None,
        alias="COUNTERSIGN_RETENTION",
        description=(
            "Time without activity after which a thread is deleted. If it is not set, threads stay."
        ),
        examples=["90d"],
        json_schema_extra={"values": "`1d` to `3650d`"},
    )
    secret_files: Annotated[Mapping[str, SecretStr], BeforeValidator(values.secrets_dir)] = Field(
        default={},
        alias="COUNTERSIGN_SECRETS_DIR",
        description=(
            "A directory of secrets. Each file has the name of its variable; its text is masked."
        ),
        examples=["/run/secrets"],
        json_schema_extra={"values": "a path of a directory"},
    )
    language: Annotated[str, BeforeValidator(values.language)] = Field(
        default="en",
        alias="COUNTERSIGN_LANGUAGE",
        description="The language of cards. Forms and Home use the language of each person.",
        examples=["en"],
        json_schema_extra={"values": "a language with a file in `bot/words/`"},
    )
    company: Annotated[str, BeforeValidator(str.strip)] = Field(
        default="",
        alias="COUNTERSIGN_COMPANY",
        description=(
            "The company's name on cards. If it is not set, cards show the workspace's name."
        ),
        examples=["Acme"],
        json_schema_extra={"values": "a text"},
    )
    log: Annotated[Log, BeforeValidator(values.log)] = Field(
        default=Log(),
        alias="COUNTERSIGN_LOG",
        description="The lowest level that is logged, and the form of the lines.",
        examples=["info,json"],
        json_schema_extra={
            "values": "`debug`, `info`, `warning` or `error`; `text` or `json`; or one of each"
        },
    )
    redact: Annotated[MaskRules, BeforeValidator(values.redact)] = Field(
        default=NO_RULES,
        alias="COUNTERSIGN_REDACT",
        description=(
            "What to mask besides known secrets: names of keys, and regular expressions (RE2)."
        ),
        examples=["iban, CUST-[0-9]{6}"],
        json_schema_extra={"values": "at most 50 rules, separated by commas or line ends"},
    )

    @field_validator("slack_signing_secret", mode="before")
    @classmethod
    def _has_transport(cls, value: str | None, info: ValidationInfo) -> str | None:
        # A faulty app token is absent from the data, and reported by itself.
        has_no_socket = info.data.get("slack_app_token", ...) is None
        if value is None and has_no_socket:
            values.refuse(
                "not set, and neither is SLACK_APP_TOKEN",
                "set SLACK_APP_TOKEN for Socket Mode, or SLACK_SIGNING_SECRET for HTTP",
            )
        return values.signing_secret(value)

    @field_validator("approvers", mode="before")
    @classmethod
    def _somebody_decides(
        cls, value: str | tuple[str, ...], info: ValidationInfo
    ) -> tuple[str, ...]:
        # A faulty path is absent from the data, and reported by itself.
        if value:
            return values.approvers(value)
        if info.data.get("policy", ...) is None:
            values.refuse("not set", _WHO_DECIDES)
        return ()

    @field_validator("expire_after", mode="after")
    @classmethod
    def _expires_last(cls, value: timedelta, info: ValidationInfo) -> timedelta:
        remind_after = info.data.get("remind_after")
        if remind_after is not None and value <= remind_after:
            values.refuse(
                (
                    "it's shorter than COUNTERSIGN_REMIND_AFTER, so requests would expire before "
                    "their reminder"
                ),
                "make it longer than COUNTERSIGN_REMIND_AFTER",
            )
        return value

    @field_validator("escalate_after", mode="after")
    @classmethod
    def _escalates_before_expiry(
        cls, value: timedelta | None, info: ValidationInfo
    ) -> timedelta | None:
        expire_after = info.data.get("expire_after")
        if value is not None and expire_after is not None and value >= expire_after:
            values.refuse(
                (
                    "it's longer than COUNTERSIGN_EXPIRE_AFTER, so requests would expire before "
                    "backups are asked"
                ),
                "make it shorter than COUNTERSIGN_EXPIRE_AFTER",
            )
        return value

    @field_validator("escalate_to", mode="after")
    @classmethod
    def _escalates_to_somebody(
        cls, value: tuple[str, ...], info: ValidationInfo
    ) -> tuple[str, ...]:
        # A faulty time is absent from the data, and reported by itself.
        escalate_after = info.data.get("escalate_after", ...)
        if value and escalate_after is None:
            values.refuse(
                "backups are never asked, because COUNTERSIGN_ESCALATE_AFTER isn't set",
                "set that to a duration such as 1h, or unset this",
            )
        if not value and isinstance(escalate_after, timedelta):
            values.refuse(
                "not set, but COUNTERSIGN_ESCALATE_AFTER is, so there's no backup to ask",
                "name the backup people as in COUNTERSIGN_APPROVERS, or unset "
                "COUNTERSIGN_ESCALATE_AFTER",
            )
        return value

    @field_validator("channels", mode="after")
    @classmethod
    def _says_which_channels_decide(
        cls, value: tuple[str, ...], info: ValidationInfo
    ) -> tuple[str, ...]:
        names = (*info.data.get("approvers", ()), *info.data.get("escalate_to", ()))
        if CHANNEL in names and not value:
            values.refuse(
                "not set, and with `channel` the requester could choose the approvers by "
                "choosing the channel",
                "list the ids of the channels (C…) where requests may be made, or name people or "
                "groups in place of channel",
            )
        return value

    @property
    def address_of_api(self) -> str:
        """Public address of the API for programs."""
        return self.api_url or f"http://{self.api_host}:{self.api_port or 0}"

    @classmethod
    def load(cls, environ: Mapping[str, str]) -> Settings:
        """Check the environment.

        Args:
            environ: The variables of the process.

        Raises:
            InvalidSettingsError: All missing and invalid settings.
        """
        names = variables()
        problems = [*_unknown(environ, names), *_empty(environ, names)]
        given: dict[str, Any] = {
            name: environ[name].strip() for name in names if environ.get(name, "").strip()
        }
        problems += [*_beside_policy(given), *_beside_agents(given), *_personal(given)]
        try:
            settings = cls(**given)
        except ValidationError as error:
            problems += [_problem(details) for details in error.errors(include_url=False)]
            settings = None
        if problems or settings is None:
            # Raised outside of the `except`: the validation error, which contains the values, would
            # become its context.
            raise InvalidSettingsError(_one_each(problems))
        return settings

    @property
    def is_socket_mode(self) -> bool:
        """Whether Slack is reached over Socket Mode instead of HTTP."""
        return self.slack_app_token is not None

    @property
    def seal(self) -> Seal:
        """Seals audit entries with the configured keys."""
        return seal_of(self.audit_key.get_secret_value() if self.audit_key else "")

    def make_storage(self) -> Stores:
        """Return the configured database, not yet open: MongoDB, or the embedded one."""
        uri = self.mongodb_uri.get_secret_value() if self.mongodb_uri is not None else ""
        return make_storage(self.data_dir, uri=uri, driver=self.mongo_driver, seal=self.seal)

    def secrets(self) -> tuple[str, ...]:
        """Return all secret values, which the log masks."""
        ours = (self.slack_bot_token, self.slack_app_token, self.slack_signing_secret)
        keys = self.audit_key.get_secret_value().split() if self.audit_key is not None else []
        held = (*ours, *self.secret_files.values())
        secret_values = [secret.get_secret_value() for secret in held if secret is not None] + keys
        if self.mongodb_uri is not None:
            uri = self.mongodb_uri.get_secret_value()
            secret_values += [uri, *values.mongodb_passwords(uri)]
        return tuple(dict.fromkeys(secret_values))


def variables() -> Mapping[str, str]:
    """Return all variables with their descriptions."""
    fields = Settings.model_fields.values()
    return {str(field.alias): str(field.description) for field in fields}


def _unknown(environ: Mapping[str, str], names: Mapping[str, str]) -> Iterator[SettingsError]:
    for name in sorted(environ):
        upper = name.upper()
        if not upper.startswith(OURS) or upper.startswith(FOR_TESTS):
            continue
        if name in names or name in OF_PROGRAMS:
            continue
        known = {
            variable.removeprefix(OURS): variable for variable in names if variable.startswith(OURS)
        }
        close = get_close_matches(upper.removeprefix(OURS), known, n=1)
        remedy = f"did you mean {known[close[0]]}?" if close else "unset it"
        yield SettingsError(name, "unknown setting", remedy)


def _beside_policy(given: Mapping[str, str]) -> Iterator[SettingsError]:
    """Yield the settings that conflict with a policy file."""
    for name, words in IN_A_POLICY.items() if "COUNTERSIGN_POLICY" in given else ():
        if name in given:
            fault = "COUNTERSIGN_POLICY is also set and takes its place"
            yield SettingsError(name, fault, f"unset it, and add to the policy file: {words}")


def _beside_agents(given: Mapping[str, str]) -> Iterator[SettingsError]:
    name = "COUNTERSIGN_AGENT"
    if name in given and "COUNTERSIGN_AGENTS_FILE" in given:
        words = f'agents: {{main: {{use: "{given[name]}", channels: ["*"]}}}}'
        fault = "COUNTERSIGN_AGENTS_FILE is set, too, and says which agents work"
        yield SettingsError(name, fault, f"unset it, and write in that file: {words}")


def _personal(given: Mapping[str, str]) -> Iterator[SettingsError]:
    name = "COUNTERSIGN_PERSONAL_KEYS"
    if values.is_yes(given.get(name, "")) and "COUNTERSIGN_API_PORT" not in given:
        yield SettingsError(name, "set, but no API is served", "set COUNTERSIGN_API_PORT")


def _empty(environ: Mapping[str, str], names: Mapping[str, str]) -> Iterator[SettingsError]:
    for name in names:
        if name in environ and not environ[name].strip():
            yield SettingsError(name, "set, but empty", "give it a value, or unset it")


def _problem(details: Any) -> SettingsError:
    name = str(details["loc"][0])
    # Pydantic reports a default by the name of its field, other values by the alias.
    field = Settings.model_fields.get(name)
    variable = str(field.alias) if field is not None else name
    if details["type"] == "missing":
        return SettingsError(variable, "not set", _REQUIRED[variable])
    context = details["ctx"]
    return SettingsError(variable, str(context["fault"]), str(context["remedy"]))


_REQUIRED = {
    "SLACK_BOT_TOKEN": "set it to the Bot User OAuth Token (xoxb-…), from OAuth & "
    "Permissions in your app's settings",
}
"""The remedy for a missing setting that has no default."""


def _one_each(problems: Sequence[SettingsError]) -> list[SettingsError]:
    """Return the first problem of each variable: an empty variable is not also missing."""
    first: dict[str, SettingsError] = {}
    for problem in problems:
        first.setdefault(problem.variable, problem)
    return list(first.values())
