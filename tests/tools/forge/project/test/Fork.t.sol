// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {Token} from "../src/Token.sol";

/// What forge offers to tests at this address.
interface Vm {
    struct EthGetLogs {
        address emitter;
        bytes32[] topics;
        bytes data;
        bytes32 blockHash;
        uint64 blockNumber;
        bytes32 transactionHash;
        uint64 transactionIndex;
        uint256 logIndex;
        bool removed;
    }

    function createSelectFork(string calldata url) external returns (uint256);
    function createSelectFork(string calldata url, uint256 number) external returns (uint256);
    function deal(address account, uint256 balance) external;
    function envAddress(string calldata name) external view returns (address);
    function envString(string calldata name) external view returns (string memory);
    function envUint(string calldata name) external view returns (uint256);
    function eth_getLogs(uint256 from, uint256 to, address target, bytes32[] calldata topics)
        external
        returns (EthGetLogs[] memory);
    function expectRevert(bytes calldata data) external;
    function prank(address sender) external;
    function rollFork(uint256 number) external;
    function rpc(string calldata method, string calldata params) external returns (bytes memory);
}

/// A token on the chain of the run: its deployer sent 1, 2 and 3 units, each in a block of its own.
contract ForkTest {
    bool public constant IS_TEST = true;
    Vm private constant vm = Vm(0x7109709ECfa91a80626fF3989D68f67F5b1DD12D);

    Token private token = Token(vm.envAddress("TOKEN"));
    address private owner = vm.envAddress("OWNER");
    address private to = vm.envAddress("TO");
    string private url = vm.envString("RPC_URL");
    uint256 private first = vm.envUint("FIRST");
    uint256 private last = vm.envUint("LAST");

    /// The fork of --fork-url is at the newest block.
    function testState() external view {
        require(block.number >= last, "number");
        require(token.balanceOf(owner) == 994, "owner");
        require(token.balanceOf(to) == 6, "to");
    }

    function testSelectAndRoll() external {
        vm.createSelectFork(url, first);
        require(block.number == first && token.balanceOf(to) == 1, "at the first");
        vm.rollFork(last);
        require(block.number == last && token.balanceOf(to) == 6, "at the last");
        vm.createSelectFork(url);
        require(block.number >= last, "at the newest");
    }

    function testCheats() external {
        vm.deal(to, 7 ether);
        require(to.balance == 7 ether, "deal");
        vm.prank(owner);
        token.transfer(to, 4);
        require(token.balanceOf(to) == 10, "prank");
        vm.expectRevert(
            abi.encodeWithSelector(Token.InsufficientBalance.selector, address(this), 0, 1)
        );
        token.transfer(to, 1);
    }

    function testRequests() external {
        bytes memory found = vm.rpc("eth_chainId", "[]");
        require(uint256(bytes32(found)) >> (256 - 8 * found.length) == block.chainid, "rpc");
        bytes32[] memory topics = new bytes32[](1);
        topics[0] = Token.Transfer.selector;
        Vm.EthGetLogs[] memory logs = vm.eth_getLogs(first, last, address(token), topics);
        require(logs.length == 3, "logs");
        for (uint256 i = 0; i < 3; i++) {
            require(abi.decode(logs[i].data, (uint256)) == i + 1, "value");
            require(logs[i].topics[2] == bytes32(uint256(uint160(to))), "topic");
        }
        require(logs[0].blockNumber == first && logs[2].blockNumber == last, "blocks");
    }
}
