// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

/// A token as clients know it, and every way in which a call can fail.
/// compile.mjs makes token.json of it.
contract Token {
    error InsufficientBalance(address from, uint256 balance, uint256 wanted);

    event Transfer(address indexed from, address indexed to, uint256 value);

    string public constant symbol = "TOK";
    uint8 public constant decimals = 6;
    mapping(address => uint256) public balanceOf; // slot 0

    constructor() {
        balanceOf[msg.sender] = 1000;
    }

    function transfer(address to, uint256 value) external returns (bool) {
        uint256 balance = balanceOf[msg.sender];
        if (balance < value) revert InsufficientBalance(msg.sender, balance, value);
        balanceOf[msg.sender] = balance - value;
        balanceOf[to] += value;
        emit Transfer(msg.sender, to, value);
        return true;
    }

    function failWithReason() external pure {
        revert("not today");
    }

    function failWithoutReason() external pure {
        revert();
    }

    function panic() external pure {
        assert(false);
    }

    function runIntoInvalid() external pure {
        assembly {
            invalid()
        }
    }
}
