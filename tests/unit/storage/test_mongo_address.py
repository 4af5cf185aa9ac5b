"""What an operator writes into the address holds, or is refused by name; nothing is overruled."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from storage.errors import Fault, StoreBrokenError
from storage.mongo import Driver
from storage.mongo.address import ServerAddress, secrets_of
from storage.mongo.client import Client
from tests.support.mongo import MAY_LEAK
from tests.support.stores import MongoStores

pytestmark = MAY_LEAK

HOST = "mongodb://127.0.0.1:1/db"
DRIVERS: list[Driver] = ["motor", "pymongo"]


def an_address(options: str = "") -> ServerAddress:
    return ServerAddress(f"{HOST}?{options}", timeout_ms=1_800)


@pytest.mark.parametrize(
    "option",
    [
        "w=1",
        "w=0",
        "directConnection=true",
        "journal=false",
        "readConcernLevel=local",
        "readPreference=secondary",
        "readPreference=primaryPreferred",
        "wtimeoutMS=1",
        "fsync=true",
        "readPreferenceTags=dc:a",
        "maxStalenessSeconds=90",
        "timeoutMS=0",
        "timeoutMS=10001",
        "timeoutMS=soon",
    ],
)
def test_an_option_that_weakens_what_we_rely_on_is_refused_by_name(option: str) -> None:
    with pytest.raises(StoreBrokenError, match=option.partition("=")[0]) as caught:
        an_address(option).check()

    assert caught.value.fault is Fault.ADDRESS


@pytest.mark.parametrize(
    "options",
    [
        "",
        "retryWrites=true&w=majority&appName=Cluster0",  # as Atlas writes it
        "W=MAJORITY&journal=true&readPreference=primary&readConcernLevel=majority",
        "timeoutMS=1",
        "timeoutMS=10000",
        "replicaSet=rs0&authSource=admin&tls=true&directConnection=false",
    ],
)
def test_other_options_are_left_to_the_driver(options: str) -> None:
    an_address(options).check()


@pytest.mark.parametrize("driver", DRIVERS)
async def test_the_options_of_the_address_hold(driver: Driver) -> None:
    uri = f"{HOST}?timeoutMS=4000&connectTimeoutMS=700&appName=ours&retryWrites=false"
    client = Client(uri, driver=driver, database=None, timeout=timedelta(seconds=2))

    options = client._connect().client.options

    assert options.timeout == 4
    assert options.pool_options.connect_timeout == 0.7
    assert options.pool_options.appname == "ours"
    assert not options.retry_writes
    assert options.retry_reads
    await client.close()


def test_the_first_connection_may_take_longer_than_an_operation() -> None:
    assert an_address().open_ms == 4 * an_address().timeout_ms
    assert an_address("timeoutMS=5000").open_ms == 20_000
    assert an_address("serverSelectionTimeoutMS=9000").open_ms == 9_000
    assert an_address("serverSelectionTimeoutMS=9000").timeout_ms == 1_800


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("name", ["tlsCAFile", "tlsCertificateKeyFile"])
async def test_a_missing_file_is_named(driver: Driver, name: str, tmp_path: Path) -> None:
    missing = tmp_path / "nope.pem"
    storage = MongoStores(f"{HOST}?tls=true&{name}={missing}", driver=driver)

    with pytest.raises(StoreBrokenError, match=rf"(?i){name} names .*nope\.pem, which") as caught:
        await storage.open()

    assert caught.value.fault is Fault.ADDRESS


@pytest.mark.parametrize("driver", DRIVERS)
async def test_a_file_that_holds_no_certificate_is_no_traceback(
    driver: Driver, tmp_path: Path
) -> None:
    (tmp_path / "ca.pem").write_text("no certificate")
    storage = MongoStores(f"{HOST}?tls=true&tlsCAFile={tmp_path / 'ca.pem'}", driver=driver)

    with pytest.raises(StoreBrokenError, match="its address cannot be used"):
        await storage.open()


@pytest.mark.parametrize("user", ["a", "ab", "bot"])
def test_a_short_user_name_is_not_cut_out_of_other_words(user: str) -> None:
    address = ServerAddress(f"mongodb://{user}:hunter2@host/db", timeout_ms=1)

    assert address.clean("about a bot that must be escaped") == "about a bot that must be escaped"
    assert address.clean(f"{user}:hunter2 and hunter2") == "*** and ***"


def test_a_long_user_name_is() -> None:
    assert "countersign" in secrets_of("mongodb://countersign:hunter2@host/db")
