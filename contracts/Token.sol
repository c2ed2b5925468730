// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @title Token, predeployed at 0x7E57000000000000000000000000000000000020
/// @notice A plain ERC-20 for examples and generated load; every dev account begins with some.
/// @dev Balances are slot 0, allowances slot 1, the supply slot 2: the genesis fills them, and
/// whoever checks the chain from outside may rely on them. Reverts carry the errors of ERC-6093.
contract Token {
    string public constant name = "Foreblock Test Token";
    string public constant symbol = "TEST";
    uint8 public constant decimals = 18;

    /// @notice What an account has.
    mapping(address owner => uint256) public balanceOf; // slot 0

    /// @notice What a spender may take from an account; the largest number is no limit.
    mapping(address owner => mapping(address spender => uint256)) public allowance; // slot 1

    /// @notice All there is; it never changes.
    uint256 public totalSupply; // slot 2

    event Transfer(address indexed from, address indexed to, uint256 value);
    event Approval(address indexed owner, address indexed spender, uint256 value);

    error ERC20InsufficientBalance(address sender, uint256 balance, uint256 needed);
    error ERC20InsufficientAllowance(address spender, uint256 allowance, uint256 needed);
    error ERC20InvalidReceiver(address receiver);

    /// @notice Move `value` from the caller to `to`.
    function transfer(address to, uint256 value) external returns (bool) {
        _move(msg.sender, to, value);
        return true;
    }

    /// @notice Let `spender` take up to `value` from the caller.
    function approve(address spender, uint256 value) external returns (bool) {
        allowance[msg.sender][spender] = value;
        emit Approval(msg.sender, spender, value);
        return true;
    }

    /// @notice Move `value` from `from`, who has allowed it, to `to`.
    function transferFrom(address from, address to, uint256 value) external returns (bool) {
        uint256 allowed = allowance[from][msg.sender];
        if (allowed != type(uint256).max) {
            if (allowed < value) revert ERC20InsufficientAllowance(msg.sender, allowed, value);
            allowance[from][msg.sender] = allowed - value;
        }
        _move(from, to, value);
        return true;
    }

    function _move(address from, address to, uint256 value) private {
        if (to == address(0)) revert ERC20InvalidReceiver(to);
        uint256 balance = balanceOf[from];
        if (balance < value) revert ERC20InsufficientBalance(from, balance, value);
        balanceOf[from] = balance - value;
        balanceOf[to] += value;
        emit Transfer(from, to, value);
    }
}
