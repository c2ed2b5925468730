//! A state in memory and small contracts, for the tests of this crate.

use std::{collections::BTreeMap, sync::Arc};

use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U256, keccak256};

use crate::{
    error::{Error, Result},
    evm::{
        env::{BlockFields, Env},
        overlay::Overlay,
        rules::Rules,
    },
    state::{AccountState, Changes, StateReader},
};

/// A plain model of the store: everything by its full key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct MemoryState {
    pub(crate) accounts: BTreeMap<Address, AccountState>,
    pub(crate) slots: BTreeMap<(Address, u64, U256), U256>,
    pub(crate) codes: BTreeMap<B256, Bytes>,
    pub(crate) block_hashes: BTreeMap<u64, B256>,
}

impl StateReader for MemoryState {
    fn account(&self, address: &Address) -> Result<Option<AccountState>> {
        Ok(self.accounts.get(address).copied())
    }

    fn storage(&self, address: &Address, generation: u64, slot: &U256) -> Result<U256> {
        Ok(self.slots.get(&(*address, generation, *slot)).copied().unwrap_or_default())
    }

    fn code(&self, hash: &B256) -> Result<Bytes> {
        self.codes.get(hash).cloned().ok_or(Error::MissingCode(*hash))
    }

    fn block_hash(&self, number: u64) -> Result<B256> {
        Ok(self.block_hashes.get(&number).copied().unwrap_or_default())
    }
}

impl MemoryState {
    pub(crate) fn fund(mut self, address: Address, balance: impl Into<Wei>) -> Self {
        self.accounts.entry(address).or_insert(AccountState::EMPTY).balance = balance.into().0;
        self
    }

    pub(crate) fn nonce(mut self, address: Address, nonce: u64) -> Self {
        self.accounts.entry(address).or_insert(AccountState::EMPTY).nonce = nonce;
        self
    }

    pub(crate) fn contract(mut self, address: Address, code: impl Into<Bytes>) -> Self {
        let code = code.into();
        let account = self.accounts.entry(address).or_insert(AccountState::EMPTY);
        account.code_hash = keccak256(&code);
        account.nonce = account.nonce.max(1);
        if account.code_hash != KECCAK256_EMPTY {
            self.codes.insert(account.code_hash, code);
        }
        self
    }

    pub(crate) fn slot(mut self, address: Address, slot: u64, value: u64) -> Self {
        let generation = self.accounts.entry(address).or_insert(AccountState::EMPTY).generation;
        self.slots.insert((address, generation, U256::from(slot)), U256::from(value));
        self
    }

    pub(crate) fn overlay(&self) -> Overlay {
        Overlay::new(Box::new(self.clone()))
    }

    /// The state after the changes, as a store would have it.
    pub(crate) fn after(&self, changes: &Changes) -> Self {
        let mut state = self.clone();
        for (address, change) in &changes.accounts {
            assert_eq!(state.accounts.get(address).copied(), change.before, "{address}");
            match change.after {
                Some(account) => state.accounts.insert(*address, account),
                None => state.accounts.remove(address),
            };
            for (slot, value) in &change.slots {
                let generation = change.after.expect("slots need an account").generation;
                state.slots.insert((*address, generation, *slot), *value);
            }
        }
        state.codes.extend(changes.codes.clone());
        state
    }

    pub(crate) fn supply(&self) -> U256 {
        self.accounts.values().map(|account| account.balance).sum()
    }
}

/// Wei from the number types tests like to write.
pub(crate) struct Wei(U256);

impl From<u128> for Wei {
    fn from(wei: u128) -> Self {
        Self(U256::from(wei))
    }
}

impl From<U256> for Wei {
    fn from(wei: U256) -> Self {
        Self(wei)
    }
}

pub(crate) const ETHER: u128 = 1_000_000_000_000_000_000;
pub(crate) const CHAIN_ID: u64 = 901;

pub(crate) fn addr(byte: u8) -> Address {
    Address::repeat_byte(byte)
}

/// The precompile address `number`.
pub(crate) fn precompile(number: u16) -> Address {
    Address::left_padding_from(&number.to_be_bytes())
}

pub(crate) fn fields() -> BlockFields {
    BlockFields {
        number: 1000,
        timestamp: 2_000_000,
        coinbase: addr(0xcb),
        gas_limit: 30_000_000,
        base_fee: 0,
        difficulty: U256::from(131_072),
        prevrandao: Some(B256::repeat_byte(0x77)),
        blob_base_fee: Some(1),
        max_blobs_per_transaction: Some(6),
        max_code_size: None,
        max_transaction_gas: None,
    }
}

pub(crate) fn env(rules: Rules) -> Arc<Env> {
    env_with(rules, &fields())
}

pub(crate) fn env_with(rules: Rules, fields: &BlockFields) -> Arc<Env> {
    Arc::new(Env::new(rules, CHAIN_ID, fields).expect("a valid environment"))
}

pub(crate) fn ethereum(fork: &str) -> Rules {
    Rules::ethereum(fork).expect("a fork of Ethereum")
}

pub(crate) fn optimism(fork: &str) -> Rules {
    Rules::optimism(fork).expect("a fork of Optimism")
}

pub(crate) const ETHEREUM_FORKS: [&str; 15] = [
    "Frontier",
    "Homestead",
    "Tangerine",
    "SpuriousDragon",
    "Byzantium",
    "Constantinople",
    "Petersburg",
    "Istanbul",
    "Berlin",
    "London",
    "Paris",
    "Shanghai",
    "Cancun",
    "Prague",
    "Osaka",
];

pub(crate) const OPTIMISM_FORKS: [&str; 10] = [
    "Bedrock", "Regolith", "Canyon", "Ecotone", "Fjord", "Granite", "Holocene", "Isthmus",
    "Jovian", "Karst",
];

/// Small programs, put together from opcodes by name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Asm(Vec<u8>);

impl Asm {
    pub(crate) fn op(mut self, code: u8) -> Self {
        self.0.push(code);
        self
    }

    pub(crate) fn ops(mut self, codes: &[u8]) -> Self {
        self.0.extend(codes);
        self
    }

    /// PUSH with as few bytes as needed, at least one.
    pub(crate) fn push(mut self, value: impl TryInto<U256, Error: std::fmt::Debug>) -> Self {
        let value: U256 = value.try_into().expect("fits a word");
        let bytes = value.to_be_bytes_trimmed_vec();
        let bytes = if bytes.is_empty() { vec![0] } else { bytes };
        self.0.push(0x5f + bytes.len() as u8);
        self.0.extend(bytes);
        self
    }

    pub(crate) fn push_address(mut self, address: Address) -> Self {
        self.0.push(0x73);
        self.0.extend(address.as_slice());
        self
    }

    /// Returns the word on top of the stack.
    pub(crate) fn then(mut self, next: &Self) -> Self {
        self.0.extend_from_slice(&next.0);
        self
    }

    pub(crate) fn return_top(self) -> Self {
        use revm::bytecode::opcode::{MSTORE, RETURN};
        self.push(0u64).op(MSTORE).push(32u64).push(0u64).op(RETURN)
    }

    /// CALL with all gas and no data; leaves the success flag.
    pub(crate) fn call(self, to: Address, value: u64) -> Self {
        use revm::bytecode::opcode::{CALL, GAS};
        let zeros = self.push(0u64).push(0u64).push(0u64).push(0u64);
        zeros.push(value).push_address(to).op(GAS).op(CALL)
    }

    /// SSTORE.
    pub(crate) fn store(self, slot: u64, value: u64) -> Self {
        self.push(value).push(slot).op(revm::bytecode::opcode::SSTORE)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

impl From<Asm> for Bytes {
    fn from(asm: Asm) -> Self {
        asm.0.into()
    }
}

/// Init code that deploys `runtime`.
pub(crate) fn init_code(runtime: &[u8]) -> Bytes {
    use revm::bytecode::opcode::{CODECOPY, RETURN};
    let build = |offset: usize| {
        Asm::default()
            .push(runtime.len() as u64)
            .push(offset as u64)
            .push(0u64)
            .op(CODECOPY)
            .push(runtime.len() as u64)
            .push(0u64)
            .op(RETURN)
    };
    let offset = build(build(0xff).len()).len();
    build(offset).ops(runtime).into()
}
