// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @title L2ToL1MessagePasser, predeployed at 0x4200000000000000000000000000000000000016
/// @notice Records messages to L1. Every header carries the root of this contract's storage, by
/// which L1 can be shown that a message was sent.
/// @dev `sentMessages` is slot 0, where proofs look for it. Ether that is sent with messages stays
/// here: a dev chain has no L1 that would pay it out.
contract L2ToL1MessagePasser {
    /// @notice The version of the encoding that is hashed, in the upper two bytes of a nonce.
    uint16 public constant MESSAGE_VERSION = 1;

    /// @dev L1 gas for ether that was sent without saying more.
    uint256 private constant RECEIVE_GAS_LIMIT = 100_000;

    /// @notice Whether a message with this hash was sent.
    mapping(bytes32 withdrawalHash => bool) public sentMessages; // slot 0

    /// @dev How many messages were sent.
    uint240 private _count; // slot 1

    /// @notice A message was sent.
    event MessagePassed(
        uint256 indexed nonce,
        address indexed sender,
        address indexed target,
        uint256 value,
        uint256 gasLimit,
        bytes data,
        bytes32 withdrawalHash
    );

    /// @notice The version of this contract.
    function version() external pure returns (string memory) {
        return "1.0.0+foreblock";
    }

    /// @notice Ether sent here is a message with that value to the sender's own address on L1.
    receive() external payable {
        initiateWithdrawal(msg.sender, RECEIVE_GAS_LIMIT, "");
    }

    /// @notice Send a message: on L1 `target` is to be called with `data`, `gasLimit` and the ether
    /// that comes along.
    function initiateWithdrawal(address target, uint256 gasLimit, bytes memory data)
        public
        payable
    {
        uint256 nonce = messageNonce();
        bytes32 withdrawalHash =
            keccak256(abi.encode(nonce, msg.sender, target, msg.value, gasLimit, data));
        sentMessages[withdrawalHash] = true;
        emit MessagePassed(nonce, msg.sender, target, msg.value, gasLimit, data, withdrawalHash);
        ++_count;
    }

    /// @notice The nonce of the next message: the count of messages under the version.
    function messageNonce() public view returns (uint256) {
        return uint256(MESSAGE_VERSION) << 240 | _count;
    }
}
