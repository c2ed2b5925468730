// SPDX-License-Identifier: MIT
pragma solidity ^0.8.24;

interface Paid {
    function transferFrom(address from, address to, uint256 value) external returns (bool);
}

interface Swapping {
    function swap(bool forth, address to) external returns (uint256 bought);
}

/// Sells a token through two pairs.
contract Router {
    uint256 public routed;

    function sell(Paid paid, uint256 value, Swapping first, Swapping second, bool forth)
        external
        returns (uint256 bought)
    {
        paid.transferFrom(msg.sender, address(first), value);
        first.swap(forth, address(second));
        bought = second.swap(forth, msg.sender);
        routed += value;
    }
}
