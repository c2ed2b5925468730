"""Any account arguments of methods that send or sign give a result or a clear error."""

import json
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreblock.methods import make_families
from foreblock.methods.sequencing import Sequencing
from foreblock.settings import Settings
from support.chains.dev_chain import ACCOUNTS
from support.chains.dev_service import InProcess, dev_service
from support.each_case import each_case
from support.servers.asking import Asker
from support.servers.long_work import scheduler

FAMILIES = make_families(
    Settings(),
    scheduler(1),
    Sequencing(commands=InProcess(None)),  # type: ignore[arg-type]
)
TITLES = ("sending and signing", "accounts", "the pool", "about the node")
NAMES = [
    method.name
    for family in FAMILIES
    for method in family.methods
    if family.title.removeprefix("Development chains: ") in TITLES
]
INTERNAL = -32603

alice, stranger = "0x" + ACCOUNTS[0].address.hex(), "0x" + "22" * 20
texts = st.sampled_from(
    ["", "0x", "0x0", "0x1", "0x5208", "é", "0x" + "f" * 64, "0x" + "f" * 65, alice, stranger]
)
atoms = st.one_of(
    st.none(), st.booleans(), st.integers(-1, 2**256), st.floats(allow_nan=False), texts
)
keys = st.sampled_from(
    [
        "from",
        "to",
        "value",
        "data",
        "input",
        "gas",
        "gasPrice",
        "maxFeePerGas",
        "maxPriorityFeePerGas",
        "nonce",
        "type",
        "chainId",
        "accessList",
        "authorizationList",
        "blobVersionedHashes",
        "blobs",
        "maxFeePerBlobGas",
        "address",
        "storageKeys",
        "types",
        "domain",
        "message",
        "primaryType",
        "name",
        "version",
    ]
)
values = st.recursive(
    atoms,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=5),
    max_leaves=8,
)
transactions = st.fixed_dictionaries(
    {"from": st.sampled_from([alice, stranger]), "to": st.just(stranger)}
).flatmap(lambda known: st.dictionaries(keys, atoms, max_size=4).map(lambda more: known | more))
params = st.lists(values, max_size=3) | st.tuples(transactions).map(list)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asker]:
    """A client of a chain on which every account is impersonated, so that many transactions are
    sent.
    """
    folder = tmp_path_factory.mktemp("accounts")
    with dev_service(folder) as (_, asker):
        asker.ask("anvil_autoImpersonateAccount", True)
        yield asker


@each_case("name", NAMES)
@given(params=params)
def test_no_argument_is_an_internal_error(client: Asker, name: str, params: list[object]) -> None:
    if name == "eth_sendTransactionSync":
        params = [*params[:1], 1]  # a transaction may wait forever
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": name, "params": params})
    answer = json.loads(client.reply(body.encode()).body)
    if "error" in answer:
        assert answer["error"]["code"] != INTERNAL
        assert answer["error"]["message"]
