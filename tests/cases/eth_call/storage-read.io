// An override lends the account code that reads its own slot, which is 0x2a from the genesis on.
>> {"jsonrpc":"2.0","id":1,"method":"eth_call","params":[{"to":"0x5050505050505050505050505050505050505050"},"latest",{"0x5050505050505050505050505050505050505050":{"code":"0x60015460005260206000f3"}}]}
<< {"jsonrpc":"2.0","id":1,"result":"0x000000000000000000000000000000000000000000000000000000000000002a"}
