// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @title WETH9, predeployed at 0x4200000000000000000000000000000000000006
/// @notice Ether as an ERC-20 token.
/// @dev Balances are slot 3 and allowances slot 4, as in the WETH9 of public chains, so that state
/// overrides written for those fit here. For the same reason the name, symbol and decimals are
/// storage; the genesis fills them, since a predeploy has no constructor. Where the original
/// fails, it fails without a reason, and so does this.
contract WETH9 {
    /// @notice "Wrapped Ether".
    string public name; // slot 0

    /// @notice "WETH".
    string public symbol; // slot 1

    /// @notice 18.
    uint8 public decimals; // slot 2

    /// @notice What an account has, in wei.
    mapping(address owner => uint256) public balanceOf; // slot 3

    /// @notice What a spender may take from an account, in wei; the largest number is no limit.
    mapping(address owner => mapping(address spender => uint256)) public allowance; // slot 4

    event Approval(address indexed src, address indexed guy, uint256 wad);
    event Transfer(address indexed src, address indexed dst, uint256 wad);
    event Deposit(address indexed dst, uint256 wad);
    event Withdrawal(address indexed src, uint256 wad);

    /// @notice Ether sent here is wrapped.
    receive() external payable {
        deposit();
    }

    /// @notice So is ether that comes with a call of anything that is not here.
    fallback() external payable {
        deposit();
    }

    /// @notice Wrap the ether that comes along.
    function deposit() public payable {
        balanceOf[msg.sender] += msg.value;
        emit Deposit(msg.sender, msg.value);
    }

    /// @notice Unwrap: the caller gets ether.
    function withdraw(uint256 wad) external {
        require(balanceOf[msg.sender] >= wad);
        balanceOf[msg.sender] -= wad;
        // 2300 gas for the receiver, as the original gives: the EVM adds them when there is value.
        (bool paid,) = msg.sender.call{value: wad, gas: wad == 0 ? 2300 : 0}("");
        require(paid);
        emit Withdrawal(msg.sender, wad);
    }

    /// @notice All that is wrapped, in wei.
    function totalSupply() external view returns (uint256) {
        return address(this).balance;
    }

    /// @notice Let `guy` take up to `wad` from the caller.
    function approve(address guy, uint256 wad) external returns (bool) {
        allowance[msg.sender][guy] = wad;
        emit Approval(msg.sender, guy, wad);
        return true;
    }

    /// @notice Move `wad` from the caller to `dst`.
    function transfer(address dst, uint256 wad) external returns (bool) {
        return transferFrom(msg.sender, dst, wad);
    }

    /// @notice Move `wad` from `src`, who has allowed it, to `dst`.
    function transferFrom(address src, address dst, uint256 wad) public returns (bool) {
        require(balanceOf[src] >= wad);
        if (src != msg.sender && allowance[src][msg.sender] != type(uint256).max) {
            require(allowance[src][msg.sender] >= wad);
            allowance[src][msg.sender] -= wad;
        }
        balanceOf[src] -= wad;
        balanceOf[dst] += wad;
        emit Transfer(src, dst, wad);
        return true;
    }
}
