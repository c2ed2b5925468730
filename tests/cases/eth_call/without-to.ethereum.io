// A call without `to`, whose data would be run as the code that creates a contract.
>> {"jsonrpc":"2.0","id":1,"method":"eth_call","params":[{"data":"0x602a60005260206000f3"},"latest"]}
<< {"jsonrpc":"2.0","id":1,"result":"0x000000000000000000000000000000000000000000000000000000000000002a"}
