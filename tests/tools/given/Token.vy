# pragma version 0.4.3
"""
@notice Token.sol in Vyper, for the tools that compile Vyper.
"""

event Transfer:
    sender: indexed(address)
    to: indexed(address)
    value: uint256

symbol: public(constant(String[3])) = "TOK"
balanceOf: public(HashMap[address, uint256])
since: public(uint256)


@deploy
def __init__():
    self.balanceOf[msg.sender] = 1000
    self.since = block.timestamp


@external
def transfer(to: address, amount: uint256) -> bool:
    assert self.balanceOf[msg.sender] >= amount, "not enough"
    self.balanceOf[msg.sender] -= amount
    self.balanceOf[to] += amount
    log Transfer(sender=msg.sender, to=to, value=amount)
    return True


@external
@payable
def pay(to: address):
    send(to, msg.value)


@external
@view
def age() -> uint256:
    return block.timestamp - self.since
