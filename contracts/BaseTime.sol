// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @title BaseTime, predeployed at 0x4200000000000000000000000000000000000030 with `base_time`
/// @notice The part of a second that a block of 200 ms adds to its timestamp.
contract BaseTime {
    /// @dev The sender of the deposits that a block begins with.
    address private constant DEPOSITOR = 0xDeaDDEaDDeAdDeAdDEAdDEaddeAddEAdDEAd0001;

    /// @notice The milliseconds of the block: 0, 200, 400, 600 or 800.
    uint16 public timestampMillisPart; // slot 0

    /// @notice The second transaction of each block calls this.
    function setTimestampMillisPart(uint16 part) external {
        require(msg.sender == DEPOSITOR, "only the depositor");
        timestampMillisPart = part;
    }

    /// @notice The time of the block in milliseconds.
    function timestampMs() external view returns (uint64) {
        return uint64(block.timestamp * 1000 + timestampMillisPart);
    }

    /// @notice The version of this contract.
    function version() external pure returns (string memory) {
        return "1.0.0+foreblock";
    }
}
