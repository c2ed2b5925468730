// The estimate reverts.
>> {"jsonrpc":"2.0","id":1,"method":"eth_fillTransaction","params":[{"from":"0x9d8a62f656a8d1615c1294fd71e9cfb3e4855a4f","data":"0x60006000fd","maxPriorityFeePerGas":"0x1"}]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":3,"message":"execution reverted","data":"0x"}}
