"""Random transactions with and without signatures, drops and kills, compared with a plain model."""

from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from foreblock.bus.commands import DropTransactions, Mine, SendUnsigned
from support.chains.checking import check_by_import
from support.chains.dev_chain import ACCOUNTS, NOBODY, DevChain, send

ALICE = ACCOUNTS[0]
STRANGERS = [bytes([number]) * 20 for number in (0xA1, 0xA2, 0xA3)]

who = st.integers(0, len(STRANGERS) - 1)
step = st.one_of(
    st.tuples(st.just("fund"), who, st.integers(0, 100)),
    st.tuples(st.just("unsigned"), who, st.integers(0, 60)),
    st.tuples(st.just("drop"), who, st.just(0)),
    st.tuples(st.just("mine"), st.just(0), st.just(0)),
    st.tuples(st.just("kill"), st.just(0), st.just(0)),
)


class Model:
    """Balances and nonces in the latest block, and waiting transactions, as sums of a few
    numbers.
    """

    def __init__(self) -> None:
        self.balances: Counter[bytes] = Counter()
        self.nonces: Counter[bytes] = Counter()
        self.waiting: dict[bytes, list[int]] = {each: [] for each in STRANGERS}
        self.funds: list[tuple[bytes, int]] = []

    def send(self, sender: bytes, value: int) -> bool:
        if sum(self.waiting[sender]) + value > self.balances[sender]:
            return False
        self.waiting[sender].append(value)
        return True

    def mine(self) -> None:
        for to, value in self.funds:
            self.balances[to] += value
            self.nonces[ALICE.address] += 1
        for sender, values in self.waiting.items():
            self.balances[sender] -= sum(values)
            self.balances[NOBODY] += sum(values)
            self.nonces[sender] += len(values)
        self.forget()

    def forget(self) -> None:
        self.funds = []
        for values in self.waiting.values():
            values.clear()


@settings(max_examples=10, deadline=None)
@given(st.lists(step, max_size=25))
def test_what_is_sent_happens_once_and_in_order(steps: list[tuple[str, int, int]]) -> None:
    model = Model()
    with TemporaryDirectory() as folder:
        chain = DevChain(Path(folder) / "store", mining="manual")
        for what, number, value in steps:
            stranger = STRANGERS[number]
            if what == "fund":
                nonce = model.nonces[ALICE.address] + len(model.funds)
                chain.submit(send(ALICE, nonce, stranger, value))
                model.funds.append((stranger, value))
            elif what == "unsigned":
                asked = SendUnsigned(
                    stranger, NOBODY, value.to_bytes(32), b"", 21_000, is_allowed=True
                )
                assert isinstance(chain.execute(asked), bytes) == model.send(stranger, value)
            elif what == "drop":
                dropped = chain.execute(DropTransactions(sender=stranger))
                assert len(dropped) == len(model.waiting[stranger])
                model.waiting[stranger].clear()
            elif what == "mine":
                chain.execute(Mine())
                model.mine()
            else:  # the pool is lost with the process
                chain.kill()
                chain.open()
                model.forget()
            check(chain, model)
        check_by_import(chain, Path(folder) / "check")
        chain.kill()


def check(chain: DevChain, model: Model) -> None:
    with chain.store.view() as view:
        assert view.heads.latest is not None
        state = view.state(view.heads.latest[0])
        for each in (*STRANGERS, NOBODY):
            assert state.balance(each) == model.balances[each]
        for each in (*STRANGERS, ALICE.address):
            assert state.nonce(each) == model.nonces[each]
    for each in STRANGERS:
        expected = model.nonces[each] + len(model.waiting[each])
        assert chain.sequencer.next_nonce(each) == expected
