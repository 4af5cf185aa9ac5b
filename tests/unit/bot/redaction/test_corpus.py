"""Secrets of many vendors and ordinary texts: how many the masks miss, how many they hide.

The forms are those that the vendors document and that public scanners (gitleaks, detect-secrets,
trufflehog) look for; those that `test_properties` and `test_shapes` have are not here again. Every
value is made here; none was ever valid.
"""

from __future__ import annotations

import base64
from urllib.parse import quote

import pytest

from bot.redaction.mask import REDACTED, mask, mask_text

MIXED = "aB3dE6fH9iJ2kL5mN8oP1qR4sT7uV0wX3yZ6" * 8
LOWER = "a3b6c9d2e5f8g1h4i7j0k3l6m9n2o5p8q1r4" * 8
UPPER = "A3B6C9D2E5F8G2H4I7J3K3L6M5N2O5P4Q2R4" * 8
HEX = "0a1b2c3d4e5f60718293a4b5c6d7e8f9" * 8
DIGITS = "7391826450" * 8
UUID = "8c7b2d4e-1f3a-4b5c-9d6e-7f8a9b0c1d2e"
PASSWORD = "Tr0ub4dor&3x"


def encoded(text: str) -> str:
    """A text in base64."""
    return base64.b64encode(text.encode()).decode()


TOKENS = {
    # package registries
    "RubyGems": "rubygems_" + HEX[:48],
    "crates.io": "cio" + MIXED[:32],
    "NuGet": "oy2" + LOWER[:43],
    "Clojars": "CLOJARS_" + LOWER[:60],
    "Artifactory key": "AKCp" + MIXED[:69],
    "Artifactory reference": "cmVmd" + MIXED[:59],
    "Docker organization token": "dckr_oat_" + MIXED[:32],
    # code hosts and build services
    "GitLab runner registration": "GR1348941" + MIXED[:20],
    "GitLab CI job": "glcbt-1_" + MIXED[:20],
    "Bitbucket app password": "ATBB" + MIXED[:32],
    "Bitbucket app password, newer": "ATBB" + MIXED[:15] + "_" + MIXED[:16],
    "Bitbucket server": "BBDC-" + MIXED[:20] + "/" + MIXED[:23],
    "Bitbucket repository token": "ATCTT3xFfGN0" + MIXED[:60],
    "Atlassian": "ATATT3xFfGF0" + MIXED[:180],
    "Sourcegraph": "sgp_" + HEX[:40],
    "Sonar": "squ_" + HEX[:40],
    "Buildkite agent": "bkua_" + HEX[:40],
    "CircleCI": "CCIPAT_" + MIXED[:22] + "_" + HEX[:40],
    "Harness": "pat." + MIXED[:22] + "." + HEX[:24] + "." + MIXED[:20],
    "Harness, newer": "pat." + MIXED[:22] + "." + MIXED[:24] + "." + MIXED[:20],
    "Sonar, newer": "sqa_" + LOWER[:20] + "=" + LOWER[:19],
    "Octopus Deploy": "API-" + UPPER[:26],
    "Pulumi": "pul-" + HEX[:40],
    "Prefect": "pnu_" + LOWER[:36],
    "Infracost": "ico-" + MIXED[:32],
    "Scalingo": "tk-us-" + MIXED[:24] + "_" + MIXED[:23],
    "OpenShift": "sha256~" + MIXED[:43],
    "1Password service account": "ops_eyJ" + MIXED[:260],
    "1Password secret key": "A3-ASWWYB-798JRY-LJVD4-23DC2-86TVM-H43EB"[:34],
    # clouds
    "DigitalOcean OAuth": "doo_v1_" + HEX[:64],
    "DigitalOcean refresh": "dor_v1_" + HEX[:64],
    "Alibaba": "LTAI" + MIXED[:20],
    "Tencent": "AKID" + MIXED[:32],
    "Yandex": "AQVN" + MIXED[:36],
    "Cloudflare origin CA": "v1.0-" + HEX[:24] + "-" + HEX[:146],
    "Fly": "FlyV1 fm2_" + MIXED[:100],
    "Vercel": "vcp_" + MIXED[:56],
    "Vercel store": "vercel_blob_rw_" + MIXED[:16] + "_" + MIXED[:30],
    "Netlify": "nfp_" + MIXED[:36],
    "Render": "rnd_" + MIXED[:32],
    "PlanetScale token": "pscale_tkn_" + MIXED[:43],
    "PlanetScale password": "pscale_pw_" + MIXED[:43],
    "PlanetScale OAuth": "pscale_oauth_" + MIXED[:43],
    "ClickHouse": "4b1d" + MIXED[:38],
    "Neon": "napi_" + LOWER[:64],
    # observability
    "Grafana service account": "glsa_" + MIXED[:32] + "_" + HEX[:8],
    "Grafana cloud": "glc_eyJ" + MIXED[:80],
    "Sentry organization": "sntrys_eyJ" + MIXED[:120],
    "Sentry address": f"https://{HEX[:32]}@o123456.ingest.sentry.io/4505",
    "New Relic browser": "NRJS-" + HEX[:19],
    "New Relic insert": "NRII-" + MIXED[:32],
    "Dynatrace": "dt0c01." + UPPER[:24] + "." + UPPER[:64],
    "Highlight of PostHog": "phc_" + MIXED[:43],
    "PostHog personal": "phx_" + MIXED[:43],
    "PagerDuty, older": "u+" + MIXED[:18],
    "PagerDuty": "pdus+_0XBPWQQ_" + UUID,
    # messages and mail
    "Slack webhook": "https://hooks.slack.com/services/T00000000/B00000000/" + MIXED[:24],
    "Discord webhook": "https://discord.com/api/webhooks/" + DIGITS[:18] + "/" + MIXED[:68],
    "Mailchimp": HEX[:32] + "-us14",
    "Mandrill": "md-" + MIXED[:22],
    "Mailgun public": "pubkey-" + HEX[:32],
    "Resend": "re_" + MIXED[:8] + "_" + MIXED[:24],
    # money and shops
    "Stripe, production": "rk_prod_" + MIXED[:24],
    "Square": "sq0atp-" + MIXED[:22],
    "Square, newer": "EAAA" + MIXED[:60],
    "Braintree": "access_token$production$" + LOWER[:16] + "$" + HEX[:32],
    "PayPal with Braintree": "access_token$sandbox$" + LOWER[:16] + "$" + HEX[:32],
    "EasyPost": "EZAK" + MIXED[:54],
    "Shippo": "shippo_live_" + HEX[:40],
    "Flutterwave encryption": "FLWSECK_TEST-" + HEX[:12],
    "Flutterwave": "FLWSECK_TEST-" + HEX[:32] + "-X",
    "Duffel": "duffel_live_" + MIXED[:43],
    "Plaid": "access-production-" + UUID,
    "Lob": "live_" + HEX[:35],
    "Adyen": "AQE" + MIXED[:60] + "-" + MIXED[:43] + "=-" + MIXED[:16],
    # work
    "Airtable": "pat" + MIXED[:14] + "." + HEX[:64],
    "Linear": "lin_api_" + MIXED[:40],
    "Linear OAuth": "lin_oauth_" + HEX[:64],
    "Asana": "1/" + DIGITS[:16] + ":" + HEX[:32],
    "Asana personal": "2/" + DIGITS[:16] + "/" + DIGITS[:16] + ":" + HEX[:32],
    "ClickUp": "pk_" + DIGITS[:8] + "_" + UPPER[:32],
    "HubSpot": "pat-na1-" + UUID,
    "Typeform": "tfp_" + MIXED[:59],
    "Postman": "PMAK-" + HEX[:24] + "-" + HEX[:34],
    "Frame.io": "fio-u-" + MIXED[:64],
    "Readme": "rdme_" + LOWER[:70],
    "Okta": "SSWS 00" + MIXED[:40],
    "Mapbox secret": "sk.eyJ1" + MIXED[:60] + "." + MIXED[:22],
    "Contentful": "CFPAT-" + MIXED[:43],
    "Facebook": "EAACEdEose0cBA" + MIXED[:80],
    "Adobe": "p8e-" + LOWER[:32],
    # models
    "Hugging Face organization": "api_org_" + MIXED[:34],
    "LangSmith": "lsv2_pt_" + HEX[:32] + "_" + HEX[:10],
    "Pinecone": "pcsk_" + MIXED[:60],
    "NVIDIA": "nvapi-" + MIXED[:64],
    "Weights & Biases": "wandb_v1_" + MIXED[:77],
    # networks, and what people log in with
    "Tailscale": "tskey-auth-" + MIXED[:17] + "-" + MIXED[:32],
    "Defined Networking": "dnkey-" + LOWER[:26] + "-" + LOWER[:52],
    "MaxMind": MIXED[:6] + "_" + MIXED[:29] + "_mmk",
    "Yandex IAM": "t1." + MIXED[:90] + "." + MIXED[:86],
    "Authress": "sc_" + LOWER[:24] + "." + LOWER[:5] + ".acc-" + LOWER[:20] + "." + MIXED[:60],
    "X": "A" * 22 + MIXED[:86],
    "42": "s-s4t2ud-" + HEX[:64],
    "SettleMint": "sm_pat_" + MIXED[:16],
    "GoCardless": "live_" + MIXED[:20] + "-" + MIXED[:19],
    "Grafana key, older": "eyJrIjoi" + MIXED[:80] + "==",
    # forms that no vendor owns
    "htpasswd": "rosa:$apr1$Zq8w1x7k$" + MIXED[:22],
    "htpasswd, SHA": "rosa:{SHA}" + encoded("0123456789abcdef0123"),
    "LDAP password": "{SSHA}" + encoded("0123456789abcdef01234567"),
    "PBKDF2": "pbkdf2_sha256$600000$" + MIXED[:22] + "$" + MIXED[:43] + "=",
    "scrypt": "scrypt:32768:8:1$" + MIXED[:16] + "$" + HEX[:128],
}
"""A token by itself: the text around it says nothing."""

PLACES = {
    "Docker identity": '{"auths":{"registry.example":{"identitytoken":"' + UUID + '"}}}',
    "Wi-Fi code": f"WIFI:T:WPA;S:Guests;P:{PASSWORD};;",
    "Wi-Fi code, other order": f"WIFI:S:Guests;P:{PASSWORD};T:WPA;;",
    "Wi-Fi words": f"Wi-Fi code: {PASSWORD}",
    "wpa_supplicant": f'psk="{PASSWORD}"',
    "URL-encoded address": quote(f"postgres://app:{PASSWORD}@db.example/shop", safe=""),
    "URL-encoded field": "next=%2Fa%3Fpassword%3D" + quote(PASSWORD),
    "URL-encoded form": "grant_type=password&username=rosa&password=" + quote(PASSWORD),
    "URL-encoded header": quote("Authorization: Bearer " + MIXED[:24], safe=""),
    "base64 of a login": encoded("rosa:" + PASSWORD),
    "base64 of a field": encoded("DB_PASSWORD=" + PASSWORD),
    "base64 of a token": encoded("ghp_" + MIXED[:36]),
    "base64 of a config": encoded('{"password": "' + PASSWORD + '"}'),
    "Basic header": "Authorization: Basic " + encoded("rosa:" + PASSWORD),
    "Basic login of letters": "Basic YWJjOmRl",
    "X-Auth-Token": "X-Auth-Token: " + HEX[:32],
    "cookie": "Set-Cookie: session=" + HEX[:40] + "; HttpOnly",
    "pgpass": f"db.example:5432:shop:app:{PASSWORD}",
    "JDBC": f"jdbc:mysql://db/shop?user=app&password={PASSWORD}",
    "command line": f"redis-cli -h db -a {PASSWORD} ping",
    "environment": f"export GITHUB_TOKEN={MIXED[:30]}",
}
"""A secret that only its place gives away."""


def _hidden(text: str, secret: str) -> bool:
    return secret not in mask_text(text)


@pytest.mark.parametrize("name", TOKENS)
def test_a_token_is_masked_wherever_it_stands(name: str) -> None:
    token = TOKENS[name]
    core = token.split("//")[-1].split("@")[0][-12:]
    for text in (f"use {token} now", f'{{"x": "{token}"}}', f"x={token}\n"):
        assert _hidden(text, core), mask_text(text)


@pytest.mark.parametrize("name", PLACES)
def test_a_secret_is_masked_for_its_place(name: str) -> None:
    shown = mask_text(PLACES[name])
    assert REDACTED in shown
    for secret in (PASSWORD, quote(PASSWORD), encoded(PASSWORD), "YWJjOmRl", HEX[:32]):
        assert secret not in shown


ORDINARY = [
    "Order 4111111111111111 was sent",
    "Ticket 5500000000000004 is open",
    "tracking id 378282246310005",
    "The discarded account 4242424242424242 stays",
    "commit 0a1b2c3d4e5f60718293a4b5c6d7e8f901234567",
    "sha256:" + HEX[:64],
    "image registry.example/app@sha256:" + HEX[:64],
    "request 8c7b2d4e-1f3a-4b5c-9d6e-7f8a9b0c1d2e failed",
    "bearer of good news",
    "a basic understanding of HTTP",
    "Basic authentication is off",
    "A basic HTTP/1.1 client",
    "Example: Basic ProxyAgent instantiation",
    "test_a_form_shows_all_that_runs_by_a_single_y",
    "live_updates_of_all_orders_in_the_main_shop_1",
    "Use the Bearer scheme",
    "the password is required",
    "Reset the password for Ada",
    "tokens used: 1,234",
    "max_tokens: 4096",
    "token_type: bearer",
    "api_key_id: 17",
    "secret_name: shop/db",
    "key: environment",
    "key=value",
    "sort_key: created_at",
    "primary_key: order_id",
    "public_key_url: https://login.example/jwks",
    "pin: yes, pin the message",
    "pin the version to 3.11.4",
    "auth: required",
    "author: Rosa Ortiz",
    "authorization is checked twice",
    "https://login.example/oauth/authorize?client_id=shop&state=abc",
    "https://user@host.example/path",
    "git@github.example:shop/payments.git",
    "http://localhost:8080/path",
    "postgres://db.example:5432/shop",
    "ratio 1:2 or 10:20",
    "Order:1234 and User:9",
    "T3JkZXI6MTIzNA==",
    "VXNlcjo5OTk5OTk5",
    "SGVsbG8gd29ybGQsIHRoaXMgaXMgYSB0ZXN0",
    "a%3Db&c%2Fd",
    "q=price%3A100..200",
    "name%3DRosa%20Ortiz",
    "The price went from $5$ to $6$",
    "re_render_the_page_again_please",
    "pat_the_dog and pul-over",
    "API-first design",
    "rnd_seed=42",
    "live_updates=true",
    "cio_newsletter",
    "pk_orders_customer_id",
    "ops_team_weekly_review_meeting_notes",
    "tk-us-east region",
    "glc_count",
    "phc_average",
    "Server=db;Database=shop;User Id=app;",
    "WIFI:S:Guests;T:nopass;;",
    "the Wi-Fi code is on the wall",
    "v1.0-rc2",
    "EAAA meeting",
    "redis-cli -h db ping",
    "chmod -R 0755 /srv/app",
    "cron 0 3 * * 1-5",
    "+49 170 1234567",
    "DE89 3704 0044 0532 0130 00 is the IBAN of the shop",
    "2026-11-23T10:00:00Z",
]


@pytest.mark.parametrize("text", ORDINARY)
def test_an_ordinary_text_is_shown(text: str) -> None:
    assert mask_text(text) == text


@pytest.mark.parametrize(
    ("name", "is_masked"),
    [
        ("card", True),
        ("card_number", True),
        ("cardNumber", True),
        ("creditCard", True),
        ("pan", True),
        ("Kreditkarte", True),
        ("order", False),
        ("discard_id", False),
        ("id", False),
    ],
)
def test_a_number_is_a_card_only_where_its_name_says_so(name: str, *, is_masked: bool) -> None:
    for value in ("4111111111111111", "4111 1111 1111 1111", 4111111111111111):
        assert (mask("", {name: value}) == {name: REDACTED}) == is_masked
        assert (mask("", {name: [value]}) == {name: [REDACTED]}) == is_masked
