// a log with one topic does not match two positions
>> {"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":[{"address":"0x20bb3edd03cdb25b85f5e7e5f107c801869cc3ae","fromBlock":"0x0","topics":[null,null]}]}
<< {"jsonrpc":"2.0","id":1,"result":[]}
