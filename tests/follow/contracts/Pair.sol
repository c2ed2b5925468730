// SPDX-License-Identifier: MIT
pragma solidity ^0.8.24;

interface Held {
    function balanceOf(address owner) external view returns (uint256);
    function transfer(address to, uint256 value) external returns (bool);
}

/// Two tokens whose product is kept; what is sent to it is sold for the other.
contract Pair {
    Held public one;
    Held public other;
    uint112 public reserveOne;
    uint112 public reserveOther;
    uint32 public swapped;

    event Swap(address indexed to, uint256 paid, uint256 bought);

    constructor(Held one_, Held other_) {
        one = one_;
        other = other_;
    }

    function sync() public {
        reserveOne = uint112(one.balanceOf(address(this)));
        reserveOther = uint112(other.balanceOf(address(this)));
        swapped = uint32(block.timestamp);
    }

    function swap(bool forth, address to) external returns (uint256 bought) {
        (Held paying, Held buying) = forth ? (one, other) : (other, one);
        (uint256 has, uint256 gives) = forth ? (reserveOne, reserveOther) : (reserveOther, reserveOne);
        uint256 paid = paying.balanceOf(address(this)) - has;
        bought = (gives * paid * 997) / (has * 1000 + paid * 997);
        buying.transfer(to, bought);
        sync();
        emit Swap(to, paid, bought);
    }
}
