// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @title The length that FastLZ, level 1, would compress bytes to
/// @notice The L1 fee is charged by this length. Nothing is compressed: only the lengths of what
/// would be written are added up.
/// @dev Byte for byte the choices of the reference compressor, odd ones included, because an
/// estimate that is off by one is off in wei. The table of places has 4 bytes a bucket; a word for
/// each would make its memory cost thirty times the gas.
library FastLz {
    /// @dev Places that are remembered, by the hash of the three bytes there.
    uint256 private constant BUCKETS = 8192;

    /// @dev A match further back than this cannot be written.
    uint256 private constant WINDOW = 8192;

    /// @dev No match begins in the last 13 bytes, and none reaches into the last 4.
    uint256 private constant TAIL = 13;
    uint256 private constant REACH = 9;

    /// @dev What one instruction writes at most: 32 literals, or a match of 262 bytes.
    uint256 private constant LITERALS = 32;
    uint256 private constant MATCH = 262;

    /// @notice The compressed length of `data`.
    function compressedLength(bytes memory data) internal pure returns (uint256 total) {
        // Every place is below the length of the data and every count below the gas that
        // paying for the data takes, so nothing here can overflow.
        unchecked {
            uint256 limit = data.length < TAIL ? 0 : data.length - TAIL;
            // The last bucket is read as a whole word.
            bytes memory table = new bytes(4 * BUCKETS + 28);
            uint256 anchor;
            uint256 place = 2;
            while (place < limit) {
                uint256 three = _threeBytes(data, place);
                uint256 earlier = _exchange(table, three, place);
                if (place - earlier >= WINDOW || _threeBytes(data, earlier) != three) {
                    ++place;
                    continue;
                }
                // The reference steps ahead before it looks whether the input ends here.
                if (place + 1 >= limit) break;
                total += _literals(place - anchor);
                uint256 compared = _compare(data, earlier + 3, place + 3, limit + REACH);
                total += _match(compared);
                place += compared;
                _exchange(table, _threeBytes(data, place), place);
                ++place;
                _exchange(table, _threeBytes(data, place), place);
                ++place;
                anchor = place;
            }
            total += _literals(data.length - anchor);
        }
    }

    /// @dev Bytes written for a run of `count` bytes that match nothing.
    function _literals(uint256 count) private pure returns (uint256) {
        unchecked {
            uint256 rest = count % LITERALS;
            return count / LITERALS * (LITERALS + 1) + (rest == 0 ? 0 : rest + 1);
        }
    }

    /// @dev Bytes written for a match that took `compared` comparisons.
    function _match(uint256 compared) private pure returns (uint256) {
        unchecked {
            uint256 length = compared - 1;
            return length / MATCH * 3 + (length % MATCH >= 6 ? 3 : 2);
        }
    }

    /// @dev Comparisons up to and including the first that differs, or up to `end`.
    function _compare(bytes memory data, uint256 one, uint256 other, uint256 end)
        private
        pure
        returns (uint256 count)
    {
        unchecked {
            for (; other + count < end; ++count) {
                if (_byteAt(data, one + count) != _byteAt(data, other + count)) return count + 1;
            }
        }
    }

    /// @dev Remember `place` under the hash of `three`, and give the place that was there.
    function _exchange(bytes memory table, uint256 three, uint256 place)
        private
        pure
        returns (uint256 earlier)
    {
        assembly ("memory-safe") {
            // Knuth's multiplicative hash in 32 bits, of which the upper 13 count.
            let bucket := and(shr(19, mul(three, 2654435769)), 0x1fff)
            let slot := add(add(table, 32), shl(2, bucket))
            let word := mload(slot)
            earlier := shr(224, word)
            mstore(slot, or(shl(224, place), shr(32, shl(32, word))))
        }
    }

    /// @dev Three bytes at `place`, the first one lowest.
    function _threeBytes(bytes memory data, uint256 place) private pure returns (uint256 three) {
        assembly ("memory-safe") {
            let word := mload(add(add(data, 32), place))
            three := or(or(byte(0, word), shl(8, byte(1, word))), shl(16, byte(2, word)))
        }
    }

    function _byteAt(bytes memory data, uint256 place) private pure returns (uint256 value) {
        assembly ("memory-safe") {
            value := byte(0, mload(add(add(data, 32), place)))
        }
    }
}
