// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @title Multicall3, predeployed at 0xcA11bde05977b3631167028862bE2a173976CA11
/// @notice Many calls in one, all on the same state, and what a call may want to know of its block.
/// @dev The public interface, function for function. It keeps nothing and owns nothing: what is
/// called sees this contract as its caller, and ether left here is anybody's.
contract Multicall3 {
    struct Call {
        address target;
        bytes callData;
    }

    struct Call3 {
        address target;
        bool allowFailure;
        bytes callData;
    }

    struct Call3Value {
        address target;
        bool allowFailure;
        uint256 value;
        bytes callData;
    }

    struct Result {
        bool success;
        bytes returnData;
    }

    /// @notice Call in order; the first failure reverts all.
    function aggregate(Call[] calldata calls)
        external
        payable
        returns (uint256 blockNumber, bytes[] memory returnData)
    {
        blockNumber = block.number;
        returnData = new bytes[](calls.length);
        for (uint256 i; i < calls.length; ++i) {
            returnData[i] = _call(calls[i].target, 0, calls[i].callData, false).returnData;
        }
    }

    /// @notice Call in order; a failure reverts all if success is required.
    function tryAggregate(bool requireSuccess, Call[] calldata calls)
        public
        payable
        returns (Result[] memory returnData)
    {
        returnData = new Result[](calls.length);
        for (uint256 i; i < calls.length; ++i) {
            returnData[i] = _call(calls[i].target, 0, calls[i].callData, !requireSuccess);
        }
    }

    /// @notice `tryAggregate`, and the block it ran in.
    /// @dev The hash is that of the block itself, which nothing in the block can know: zero.
    function tryBlockAndAggregate(bool requireSuccess, Call[] calldata calls)
        public
        payable
        returns (uint256 blockNumber, bytes32 blockHash, Result[] memory returnData)
    {
        blockNumber = block.number;
        blockHash = blockhash(block.number);
        returnData = tryAggregate(requireSuccess, calls);
    }

    /// @notice `tryBlockAndAggregate` with success required.
    function blockAndAggregate(Call[] calldata calls)
        external
        payable
        returns (uint256 blockNumber, bytes32 blockHash, Result[] memory returnData)
    {
        return tryBlockAndAggregate(true, calls);
    }

    /// @notice Call in order; a failure reverts all unless its call allows it.
    function aggregate3(Call3[] calldata calls)
        external
        payable
        returns (Result[] memory returnData)
    {
        returnData = new Result[](calls.length);
        for (uint256 i; i < calls.length; ++i) {
            Call3 calldata each = calls[i];
            returnData[i] = _call(each.target, 0, each.callData, each.allowFailure);
        }
    }

    /// @notice `aggregate3` with ether for each call. The values must make up what came along,
    /// those of failed calls included.
    function aggregate3Value(Call3Value[] calldata calls)
        external
        payable
        returns (Result[] memory returnData)
    {
        returnData = new Result[](calls.length);
        uint256 total;
        for (uint256 i; i < calls.length; ++i) {
            Call3Value calldata each = calls[i];
            // No account has ether enough to overflow this, and a call that asks for more than
            // there is fails; wrapping keeps that failure the caller's to allow.
            unchecked {
                total += each.value;
            }
            returnData[i] = _call(each.target, each.value, each.callData, each.allowFailure);
        }
        require(msg.value == total, "Multicall3: value mismatch");
    }

    /// @notice The hash of one of the 256 blocks before this one; zero for any other.
    function getBlockHash(uint256 blockNumber) external view returns (bytes32 blockHash) {
        return blockhash(blockNumber);
    }

    /// @notice The number of this block.
    function getBlockNumber() external view returns (uint256 blockNumber) {
        return block.number;
    }

    /// @notice The fee recipient of this block.
    function getCurrentBlockCoinbase() external view returns (address coinbase) {
        return block.coinbase;
    }

    /// @notice The randao value of this block; since the merge it stands where the difficulty was.
    function getCurrentBlockDifficulty() external view returns (uint256 difficulty) {
        return block.prevrandao;
    }

    /// @notice The gas limit of this block.
    function getCurrentBlockGasLimit() external view returns (uint256 gaslimit) {
        return block.gaslimit;
    }

    /// @notice The time of this block, in seconds.
    function getCurrentBlockTimestamp() external view returns (uint256 timestamp) {
        return block.timestamp;
    }

    /// @notice What an account has, in wei.
    function getEthBalance(address addr) external view returns (uint256 balance) {
        return addr.balance;
    }

    /// @notice The hash of the block before this one.
    function getLastBlockHash() external view returns (bytes32 blockHash) {
        unchecked {
            return blockhash(block.number - 1);
        }
    }

    /// @notice The base fee of this block, in wei.
    function getBasefee() external view returns (uint256 basefee) {
        return block.basefee;
    }

    /// @notice The id of this chain.
    function getChainId() external view returns (uint256 chainid) {
        return block.chainid;
    }

    function _call(address target, uint256 value, bytes calldata callData, bool allowFailure)
        private
        returns (Result memory result)
    {
        (result.success, result.returnData) = target.call{value: value}(callData);
        require(result.success || allowFailure, "Multicall3: call failed");
    }
}
