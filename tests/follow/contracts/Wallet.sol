// SPDX-License-Identifier: MIT
pragma solidity ^0.8.24;

/// What an account delegates to (EIP-7702): several calls in one transaction.
contract Wallet {
    struct Step {
        address to;
        uint256 value;
        bytes data;
    }

    uint256 public runs;

    function run(Step[] calldata steps) external payable {
        for (uint256 place = 0; place < steps.length; place++) {
            (bool ok,) = steps[place].to.call{value: steps[place].value}(steps[place].data);
            require(ok, "a step failed");
        }
        runs++;
    }

    receive() external payable {}
}
