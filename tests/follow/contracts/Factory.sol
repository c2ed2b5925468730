// SPDX-License-Identifier: MIT
pragma solidity ^0.8.24;

/// Makes clones (ERC-1167), and contracts that destroy themselves before they are known.
contract Factory {
    uint256 public made;

    function clones(address target, uint256 first, uint256 count) external {
        bytes memory code = abi.encodePacked(
            hex"3d602d80600a3d3981f3363d3d373d3d3d363d73", target, hex"5af43d82803e903d91602b57fd5bf3"
        );
        for (uint256 salt = first; salt < first + count; salt++) create(code, salt, 0);
        made += count;
    }

    /// The same address each time: it is free again when the transaction ends. The contract
    /// stores 1 at 1 when it is created, the number of the block at 0 when it is called, and
    /// leaves its ether to the caller: NUMBER PUSH0 SSTORE CALLER SELFDESTRUCT.
    function mayfly(uint256 salt) external payable {
        address born = create(hex"600160015564435f5533ff5f526005601bf3", salt, msg.value);
        (bool ok,) = born.call("");
        require(ok && address(this).balance >= msg.value, "it lives");
        made++;
    }

    function create(bytes memory code, uint256 salt, uint256 value) private returns (address born) {
        assembly {
            born := create2(value, add(code, 32), mload(code), salt)
        }
        require(born != address(0), "not created");
    }
}
