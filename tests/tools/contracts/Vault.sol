// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

/// What tests of contracts are about: state, events, ether, time, and every way to fail.
/// tests/clients/compile.mjs makes Vault.json of it.
contract Vault {
    error Forbidden(address caller);
    error TooEarly(uint256 now_, uint256 unlockTime);

    event Changed(address indexed by, uint256 number);
    event Withdrawn(uint256 amount, uint256 when);

    uint256 public number; // slot 0
    address public owner; // slot 1
    uint256 public unlockTime; // slot 2

    constructor(uint256 unlockTime_) payable {
        owner = msg.sender;
        unlockTime = unlockTime_;
    }

    receive() external payable {}

    function setNumber(uint256 number_) external {
        number = number_;
        emit Changed(msg.sender, number_);
    }

    function increment() external returns (uint256) {
        number += 1;
        emit Changed(msg.sender, number);
        return number;
    }

    function withdraw() external {
        if (block.timestamp < unlockTime) revert TooEarly(block.timestamp, unlockTime);
        if (msg.sender != owner) revert Forbidden(msg.sender);
        emit Withdrawn(address(this).balance, block.timestamp);
        payable(msg.sender).transfer(address(this).balance);
    }

    function onlyOwner() external view {
        if (msg.sender != owner) revert Forbidden(msg.sender);
    }

    function failWithReason() external {
        number = 1;
        revert("not today");
    }

    function failWithoutReason() external {
        number = 1;
        revert();
    }

    function panic() external {
        number = 1;
        assert(false);
    }

    /// The block as a contract sees it.
    function environment()
        external
        view
        returns (uint256 height, uint256 time, uint256 randao, address coinbase, uint256 baseFee)
    {
        return (block.number, block.timestamp, block.prevrandao, block.coinbase, block.basefee);
    }
}
