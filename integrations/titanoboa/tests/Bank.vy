# A bank whose accounts are numbers, its teller, and copies of the teller.

event Paid:
    owner: indexed(address)
    amount: uint256

interface Bank:
    def pay(owner: address, amount: uint256) -> uint256: nonpayable

total: public(uint256)
balances: public(HashMap[address, uint256])
LIMIT: immutable(uint256)


@deploy
@payable
def __init__(limit: uint256):
    assert limit > 0, "no limit"
    LIMIT = limit
    self.total = limit


@external
def pay(owner: address, amount: uint256) -> uint256:
    assert amount > 0  # dev: nothing to pay
    assert amount <= LIMIT, "above the limit"
    self.total -= amount
    self.balances[owner] += amount
    log Paid(owner=owner, amount=amount)
    return self.balances[owner]


@external
def pay_through(bank: address, owner: address, amount: uint256) -> uint256:
    log Paid(owner=self, amount=0)
    paid: uint256 = extcall Bank(bank).pay(owner, amount)
    log Paid(owner=self, amount=paid)
    return paid


@external
def copy_of(bank: address) -> address:
    return create_minimal_proxy_to(bank)


@external
def made_of(blueprint: address, limit: uint256) -> address:
    return create_from_blueprint(blueprint, limit)


@external
def made_without(blueprint: address) -> address:
    return create_from_blueprint(blueprint)


@external
def say(number: uint256):
    print("number", number)
    assert number > 0


@external
@payable
def take() -> uint256:
    return msg.value


@external
@view
def block_now() -> (uint256, uint256):
    return block.number, block.timestamp


@external
@view
def spin():
    for i: uint256 in range(10**9):
        assert i < max_value(uint256)


@internal
def _twice(number: uint256) -> uint256:
    self.total += 1
    return number * 2
