// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {Token} from "../src/Token.sol";

/// What forge offers to scripts at this address.
interface Vm {
    function startBroadcast() external;
    function stopBroadcast() external;
}

/// Eight transactions of one account: two creations, one by the deterministic deployer, five
/// transfers of tokens and one of ether.
contract Eight {
    bool public constant IS_SCRIPT = true;
    Vm private constant vm = Vm(0x7109709ECfa91a80626fF3989D68f67F5b1DD12D);

    function run(address payable to, bytes32 salt) external {
        vm.startBroadcast();
        Token plain = new Token();
        Token(address(new Token{salt: salt}())).symbol();
        for (uint256 value = 1; value <= 5; value++) {
            plain.transfer(to, value);
        }
        to.transfer(1);
        vm.stopBroadcast();
        require(plain.balanceOf(to) == 15, "tokens");
    }
}
