// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @title L1Block of a dev chain with a fork before Jovian, at the same address as L1Block
/// @notice What the L2 knows of its L1 origin, and the fee parameters that came with it.
/// @dev The slots are those of L1Block. It is compiled for London, whose instructions every OP
/// fork has, and takes the attributes call of each of them.
contract L1BlockBeforeJovian {
    /// @notice The account that attributes deposits come from; it has no key.
    address public constant DEPOSITOR_ACCOUNT = 0xDeaDDEaDDeAdDeAdDEAdDEaddeAddEAdDEAd0001;

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

    /// @notice Weight of the L1 blob base fee in the L1 fee, in millionths; from Ecotone on.
    uint32 public blobBaseFeeScalar;

    /// @notice Weight of the L1 base fee in the L1 fee, in millionths; from Ecotone on.
    uint32 public baseFeeScalar;

    /// @notice The account that posts batches on L1, left-padded.
    bytes32 public batcherHash; // slot 4

    /// @notice Gas that every transaction is charged for; before Ecotone.
    uint256 public l1FeeOverhead; // slot 5

    /// @notice Weight of the L1 base fee, in millionths; before Ecotone.
    uint256 public l1FeeScalar; // slot 6

    /// @notice Blob base fee of the L1 origin, in wei; from Ecotone on.
    uint256 public blobBaseFee; // slot 7

    /// @notice The fixed part of the operator fee, in wei; from Isthmus on.
    uint64 public operatorFeeConstant; // slot 8

    /// @notice The part of the operator fee that goes with gas; from Isthmus on.
    uint32 public operatorFeeScalar;

    /// @notice The caller is not the depositor account.
    error NotDepositor();

    modifier onlyDepositor() {
        if (msg.sender != DEPOSITOR_ACCOUNT) revert NotDepositor();
        _;
    }

    /// @notice The version of this contract.
    function version() external pure returns (string memory) {
        return "1.0.0+foreblock";
    }

    /// @notice The attributes deposit before Ecotone.
    function setL1BlockValues(
        uint64 _number,
        uint64 _timestamp,
        uint256 _basefee,
        bytes32 _hash,
        uint64 _sequenceNumber,
        bytes32 _batcherHash,
        uint256 _l1FeeOverhead,
        uint256 _l1FeeScalar
    ) external onlyDepositor {
        number = _number;
        timestamp = _timestamp;
        basefee = _basefee;
        hash = _hash;
        sequenceNumber = _sequenceNumber;
        batcherHash = _batcherHash;
        l1FeeOverhead = _l1FeeOverhead;
        l1FeeScalar = _l1FeeScalar;
    }

    /// @notice The attributes deposit from Ecotone on.
    function setL1BlockValuesEcotone() external onlyDepositor {
        _set();
    }

    /// @notice The attributes deposit from Isthmus on.
    function setL1BlockValuesIsthmus() external onlyDepositor {
        _set();
        operatorFeeScalar = uint32(bytes4(msg.data[164:168]));
        operatorFeeConstant = uint64(bytes8(msg.data[168:176]));
    }

    function _set() private {
        baseFeeScalar = uint32(bytes4(msg.data[4:8]));
        blobBaseFeeScalar = uint32(bytes4(msg.data[8:12]));
        sequenceNumber = uint64(bytes8(msg.data[12:20]));
        timestamp = uint64(bytes8(msg.data[20:28]));
        number = uint64(bytes8(msg.data[28:36]));
        basefee = uint256(bytes32(msg.data[36:68]));
        blobBaseFee = uint256(bytes32(msg.data[68:100]));
        hash = bytes32(msg.data[100:132]);
        batcherHash = bytes32(msg.data[132:164]);
    }
}
