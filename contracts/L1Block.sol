// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @title L1Block, predeployed at 0x4200000000000000000000000000000000000015
/// @notice What the L2 knows of its L1 origin, and the fee parameters that came with it.
/// @dev Execution reads the fee parameters from these very slots, so the declarations stand in
/// the OP stack's order: slots 0 to 8, packed as Solidity packs them. They are filled by
/// transaction 0 of every block, the attributes deposit. A dev chain has Jovian's rules from its
/// first block, so Jovian's form of the call is the only one taken.
contract L1Block {
    /// @notice The account that attributes deposits come from; it has no key.
    address public constant DEPOSITOR_ACCOUNT = 0xDeaDDEaDDeAdDeAdDEAdDEaddeAddEAdDEAd0001;

    /// @notice Bytes of the attributes call: the selector and twelve packed fields.
    uint256 private constant ATTRIBUTES_BYTES = 178;

    /// @notice Number of the L1 origin.
    uint64 public number; // slot 0

    /// @notice Time of the L1 origin, in seconds.
    uint64 public timestamp;

    /// @notice Base fee of the L1 origin, in wei.
    uint256 public basefee; // slot 1

    /// @notice Hash of the L1 origin.
    bytes32 public hash; // slot 2

    /// @notice How many L2 blocks came before this one on the same L1 origin.
    uint64 public sequenceNumber; // slot 3

    /// @notice Weight of the L1 blob base fee in the L1 fee, in millionths.
    uint32 public blobBaseFeeScalar;

    /// @notice Weight of the L1 base fee in the L1 fee, in millionths.
    uint32 public baseFeeScalar;

    /// @notice The account that posts batches on L1, left-padded.
    bytes32 public batcherHash; // slot 4

    /// @notice Gone with Ecotone; declared because it has a slot. Always 0.
    uint256 public l1FeeOverhead; // slot 5

    /// @notice Gone with Ecotone; declared because it has a slot. Always 0.
    uint256 public l1FeeScalar; // slot 6

    /// @notice Blob base fee of the L1 origin, in wei.
    uint256 public blobBaseFee; // slot 7

    /// @notice The fixed part of the operator fee, in wei.
    uint64 public operatorFeeConstant; // slot 8

    /// @notice The part of the operator fee that goes with gas.
    uint32 public operatorFeeScalar;

    /// @notice Gas that a block's room shrinks by for each byte posted to L1.
    uint16 public daFootprintGasScalar;

    /// @notice The caller is not the depositor account.
    error NotDepositor();

    /// @notice The call is not 178 bytes long.
    error NotJovianAttributes();

    /// @notice The version of this contract.
    function version() external pure returns (string memory) {
        return "1.0.0+foreblock";
    }

    /// @notice The attributes deposit: fills every slot from packed call data.
    /// @dev The fields are big-endian and follow the selector without padding.
    function setL1BlockValuesJovian() external {
        if (msg.sender != DEPOSITOR_ACCOUNT) revert NotDepositor();
        if (msg.data.length != ATTRIBUTES_BYTES) revert NotJovianAttributes();
        baseFeeScalar = uint32(bytes4(msg.data[4:8]));
        blobBaseFeeScalar = uint32(bytes4(msg.data[8:12]));
        sequenceNumber = uint64(bytes8(msg.data[12:20]));
        timestamp = uint64(bytes8(msg.data[20:28]));
        number = uint64(bytes8(msg.data[28:36]));
        basefee = uint256(bytes32(msg.data[36:68]));
        blobBaseFee = uint256(bytes32(msg.data[68:100]));
        hash = bytes32(msg.data[100:132]);
        batcherHash = bytes32(msg.data[132:164]);
        operatorFeeScalar = uint32(bytes4(msg.data[164:168]));
        operatorFeeConstant = uint64(bytes8(msg.data[168:176]));
        daFootprintGasScalar = uint16(bytes2(msg.data[176:178]));
    }
}
