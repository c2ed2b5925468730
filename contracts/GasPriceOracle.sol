// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {FastLz} from "./FastLz.sol";
import {L1Block} from "./L1Block.sol";

/// @title GasPriceOracle, predeployed at 0x420000000000000000000000000000000000000F
/// @notice What a transaction will pay beside its gas: the L1 fee and the operator fee.
/// @dev It keeps nothing: every parameter is read from L1Block, and the chain has Jovian's rules
/// from its first block. Transactions are given unsigned, since wallets ask before they sign.
contract GasPriceOracle {
    /// @notice Decimals of the scalars.
    uint256 public constant DECIMALS = 6;

    L1Block private constant L1_BLOCK = L1Block(0x4200000000000000000000000000000000000015);

    /// @dev Bytes that the signature will add, none of which compresses.
    uint256 private constant SIGNATURE_BYTES = 68;

    /// @dev Fjord's estimate of what a transaction adds to a batch, in millionths of a byte:
    /// linear in the FastLZ length, and never below 100 bytes.
    uint256 private constant SLOPE = 836_500;
    uint256 private constant INTERCEPT = 42_585_600;
    uint256 private constant SMALLEST = 100 * 10 ** DECIMALS;

    /// @dev Gas that L1 charges for a byte of call data that is not zero.
    uint256 private constant GAS_PER_BYTE = 16;

    /// @notice The version of this contract.
    function version() external pure returns (string memory) {
        return "1.0.0+foreblock";
    }

    /// @notice The L1 fee of a transaction, in wei, given its unsigned encoding.
    function getL1Fee(bytes memory unsignedTransaction) external view returns (uint256) {
        return _l1Fee(FastLz.compressedLength(unsignedTransaction) + SIGNATURE_BYTES);
    }

    /// @notice A bound for the L1 fee, in wei, of any transaction whose unsigned encoding has this
    /// many bytes; much cheaper to compute than the fee.
    function getL1FeeUpperBound(uint256 unsignedBytes) external view returns (uint256) {
        uint256 bytesSigned = unsignedBytes + SIGNATURE_BYTES;
        return _l1Fee(bytesSigned + bytesSigned / 255 + 16);
    }

    /// @notice L1 gas for a transaction, given its unsigned encoding. No fee is computed by it any
    /// more.
    function getL1GasUsed(bytes memory unsignedTransaction) external pure returns (uint256) {
        uint256 length = FastLz.compressedLength(unsignedTransaction) + SIGNATURE_BYTES;
        return _estimate(length) * GAS_PER_BYTE / 10 ** DECIMALS;
    }

    /// @notice The operator fee, in wei, for this much gas.
    function getOperatorFee(uint256 gasUsed) external view returns (uint256) {
        return gasUsed * L1_BLOCK.operatorFeeScalar() * 100 + L1_BLOCK.operatorFeeConstant();
    }

    /// @notice The base fee of the block, in wei.
    function gasPrice() external view returns (uint256) {
        return block.basefee;
    }

    /// @notice The base fee of the block, in wei.
    function baseFee() external view returns (uint256) {
        return block.basefee;
    }

    /// @notice The base fee of the L1 origin, in wei.
    function l1BaseFee() external view returns (uint256) {
        return L1_BLOCK.basefee();
    }

    /// @notice The blob base fee of the L1 origin, in wei.
    function blobBaseFee() external view returns (uint256) {
        return L1_BLOCK.blobBaseFee();
    }

    /// @notice Weight of the L1 base fee in the L1 fee.
    function baseFeeScalar() external view returns (uint32) {
        return L1_BLOCK.baseFeeScalar();
    }

    /// @notice Weight of the L1 blob base fee in the L1 fee.
    function blobBaseFeeScalar() external view returns (uint32) {
        return L1_BLOCK.blobBaseFeeScalar();
    }

    /// @notice Decimals of the scalars.
    function decimals() external pure returns (uint256) {
        return DECIMALS;
    }

    /// @notice Gone with Ecotone: always reverts, as on every chain since.
    function overhead() external pure returns (uint256) {
        revert("GasPriceOracle: overhead() is deprecated");
    }

    /// @notice Gone with Ecotone: always reverts, as on every chain since.
    function scalar() external pure returns (uint256) {
        revert("GasPriceOracle: scalar() is deprecated");
    }

    /// @notice Whether Ecotone's rules are in force.
    function isEcotone() external pure returns (bool) {
        return true;
    }

    /// @notice Whether Fjord's rules are in force.
    function isFjord() external pure returns (bool) {
        return true;
    }

    /// @notice Whether Isthmus's rules are in force.
    function isIsthmus() external pure returns (bool) {
        return true;
    }

    /// @notice Whether Jovian's rules are in force.
    function isJovian() external pure returns (bool) {
        return true;
    }

    /// @dev The fee for a signed transaction that FastLZ would compress to this length.
    function _l1Fee(uint256 compressedLength) private view returns (uint256) {
        uint256 price = GAS_PER_BYTE * L1_BLOCK.basefee() * L1_BLOCK.baseFeeScalar()
            + L1_BLOCK.blobBaseFee() * L1_BLOCK.blobBaseFeeScalar();
        return _estimate(compressedLength) * price / 10 ** (2 * DECIMALS);
    }

    function _estimate(uint256 compressedLength) private pure returns (uint256) {
        uint256 line = SLOPE * compressedLength;
        return line < INTERCEPT + SMALLEST ? SMALLEST : line - INTERCEPT;
    }
}
