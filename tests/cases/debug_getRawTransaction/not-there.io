// a transaction that is not there; the reply is geth 1.17.2's
>> {"jsonrpc":"2.0","id":1,"method":"debug_getRawTransaction","params":["0x9999999999999999999999999999999999999999999999999999999999999999"]}
<< {"jsonrpc":"2.0","id":1,"result":"0x"}
