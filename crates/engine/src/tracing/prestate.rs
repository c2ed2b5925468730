//! geth's prestateTracer: the state accessed by a run before it, or its changes.
//!
//! Every account is recorded before it can change, so its value before the run is the one that geth
//! would have read. A run records only keys; values are read from the overlay before and after its
//! effects are committed.

use std::collections::{BTreeMap, BTreeSet};

use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U256, keccak256};
use revm::{
    bytecode::opcode,
    interpreter::{
        Interpreter,
        interpreter::EthInterpreter,
        interpreter_types::{InputsTr, Jumps, RuntimeFlag},
    },
    primitives::hardfork::SpecId,
};

use super::{
    context::Traced,
    faults::Faults,
    text::{Text, decimal},
};
use crate::{
    codec::json::{data, member, wide_quantity},
    error::Result,
    evm::{overlay::Overlay, work},
};

const ENTRY_BYTES: usize = 160;

/// The opcodes that access state.
pub(crate) const OBSERVED: [u8; 13] = [
    opcode::SLOAD,
    opcode::SSTORE,
    opcode::EXTCODECOPY,
    opcode::EXTCODEHASH,
    opcode::EXTCODESIZE,
    opcode::BALANCE,
    opcode::SELFDESTRUCT,
    opcode::CALL,
    opcode::CALLCODE,
    opcode::DELEGATECALL,
    opcode::STATICCALL,
    opcode::CREATE,
    opcode::CREATE2,
];

#[derive(Debug, Clone, Copy, Default)]
pub struct PrestateOptions {
    pub diff: bool,
    pub code: bool,
    pub storage: bool,
    pub empty: bool,
}

/// The state that the next instruction accesses.
#[derive(Debug)]
enum Look {
    Slot(Address, U256),
    Account(Address),
    Called(Address, Option<Address>),
    Destroys(Address, Address),
    Creates(Address),
}

#[derive(Debug)]
pub(crate) struct Prestate {
    options: PrestateOptions,
    accounts: BTreeMap<Address, BTreeSet<U256>>,
    created: BTreeSet<Address>,
    deleted: BTreeSet<Address>,
    faults: Faults,
    look: Option<Look>,
    slots: usize,
    /// Values before the run.
    before: BTreeMap<Address, Known>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Known {
    balance: U256,
    nonce: u64,
    code_hash: Option<B256>,
    code: Bytes,
    storage: BTreeMap<U256, U256>,
}

impl Prestate {
    pub(crate) fn new(options: PrestateOptions, spec: SpecId) -> Self {
        Self {
            options,
            accounts: BTreeMap::new(),
            created: BTreeSet::new(),
            deleted: BTreeSet::new(),
            faults: Faults::new(spec),
            look: None,
            slots: 0,
            before: BTreeMap::new(),
        }
    }

    pub(crate) fn note(&mut self, address: Address) {
        self.accounts.entry(address).or_default();
    }

    pub(crate) fn creates(&mut self, address: Address) {
        self.note(address);
        self.created.insert(address);
    }

    pub(crate) fn held(&self) -> usize {
        (self.accounts.len() + self.slots) * ENTRY_BYTES
    }

    pub(crate) fn step<CTX: Traced>(
        &mut self,
        interpreter: &Interpreter<EthInterpreter>,
        context: &mut CTX,
    ) {
        let op = interpreter.bytecode.opcode();
        let stack = interpreter.stack.data();
        let at = |below: usize| stack.len().checked_sub(below + 1).map(|at| stack[at]);
        let address = |below: usize| at(below).map(|word| Address::from_word(word.into()));
        let contract = interpreter.input.target_address();
        self.look = match op {
            opcode::SLOAD | opcode::SSTORE => at(0).map(|slot| Look::Slot(contract, slot)),
            opcode::EXTCODECOPY | opcode::EXTCODEHASH | opcode::EXTCODESIZE | opcode::BALANCE => {
                address(0).map(Look::Account)
            }
            opcode::SELFDESTRUCT => address(0).map(|to| Look::Destroys(contract, to)),
            opcode::CALL | opcode::CALLCODE | opcode::DELEGATECALL | opcode::STATICCALL
                if stack.len() >= 5 =>
            {
                let prague = interpreter.runtime_flag.spec_id().is_enabled_in(SpecId::PRAGUE);
                address(1).map(|to| {
                    let target = if prague { context.delegation(to) } else { None };
                    Look::Called(to, target)
                })
            }
            opcode::CREATE => Some(Look::Creates(contract.create(context.nonce(contract)))),
            opcode::CREATE2 if stack.len() >= 4 => create2(interpreter, context, contract, stack),
            _ => None,
        };
        if self.look.is_some() {
            self.faults.step(interpreter, context);
        }
    }

    pub(crate) fn step_end(&mut self, interpreter: &mut Interpreter<EthInterpreter>) {
        let Some(look) = self.look.take() else { return };
        if self.faults.step_end(interpreter).is_some_and(|fault| fault.before) {
            return;
        }
        match look {
            Look::Slot(contract, slot) => {
                if self.options.storage && self.accounts.entry(contract).or_default().insert(slot) {
                    self.slots += 1;
                }
            }
            Look::Account(address) => self.note(address),
            Look::Called(address, target) => {
                self.note(address);
                target.into_iter().for_each(|target| self.note(target));
            }
            Look::Destroys(contract, beneficiary) => {
                self.note(beneficiary);
                // EIP-6780: only contracts created in the same transaction are deleted.
                let cancun = interpreter.runtime_flag.spec_id().is_enabled_in(SpecId::CANCUN);
                if !cancun || self.created.contains(&contract) {
                    self.deleted.insert(contract);
                }
            }
            Look::Creates(address) => self.creates(address),
        }
    }

    /// Reads the values before the run, from the overlay without its effects. Returns false if the
    /// code exceeds `limit` bytes.
    pub(crate) fn read_before(&mut self, overlay: &Overlay, limit: usize) -> Result<bool> {
        let mut code_bytes = 0;
        for (address, slots) in &self.accounts {
            let known = read(overlay, address, slots)?;
            code_bytes += known.code.len();
            if code_bytes > limit {
                return Ok(false);
            }
            self.before.insert(*address, known);
        }
        Ok(true)
    }

    /// Writes the trace. `overlay` must contain the effects of the run.
    pub(crate) fn write(&self, text: &mut Text, overlay: &Overlay) -> Result<()> {
        if !self.options.diff {
            self.write_accounts(text, &self.before, &BTreeSet::new());
            return Ok(());
        }
        let (mut pre, mut post) = (BTreeMap::new(), BTreeMap::new());
        for (address, before) in &self.before {
            if self.deleted.contains(address) {
                pre.insert(*address, before.clone());
                continue;
            }
            let slots = before.storage.keys().copied().collect();
            let after = read(overlay, address, &slots)?;
            let changed = |slot: &U256| before.storage.get(slot) != after.storage.get(slot);
            if !self.differs(before, &after) && !before.storage.keys().any(changed) {
                continue;
            }
            let kept = |known: &Known| {
                let kept =
                    known.storage.iter().filter(|(slot, value)| changed(slot) && !value.is_zero());
                kept.map(|(slot, value)| (*slot, *value)).collect()
            };
            let storage = kept(before);
            let after = Known { storage: kept(&after), ..after };
            pre.insert(*address, Known { storage, ..before.clone() });
            post.insert(*address, (before, after));
        }
        text.push(b"{\"post\":{");
        for (place, (address, (before, after))) in post.iter().enumerate() {
            let out = text.out();
            if place > 0 {
                out.push(b',');
            }
            self.write_change(out, address, before, after);
        }
        text.push(b"},\"pre\":");
        let empty = self.before.iter().filter(|(_, known)| known.is_empty());
        let empty = empty.map(|(address, _)| *address).collect();
        self.write_accounts(text, &pre, &empty);
        text.push(b"}");
        Ok(())
    }

    fn differs(&self, before: &Known, after: &Known) -> bool {
        before.balance != after.balance
            || before.nonce != after.nonce
            || before.code_hash != after.code_hash
    }

    /// Omits empty accounts: in a diff those in `empty`, otherwise those that are empty.
    fn write_accounts(
        &self,
        text: &mut Text,
        accounts: &BTreeMap<Address, Known>,
        empty: &BTreeSet<Address>,
    ) {
        let mut first = true;
        text.push(b"{");
        for (address, known) in accounts {
            let is_empty = match self.options.diff {
                true => empty.contains(address),
                false => known.is_empty(),
            };
            if is_empty && !self.options.empty {
                continue;
            }
            let out = text.out();
            if !std::mem::take(&mut first) {
                out.push(b',');
            }
            data(out, address);
            member(out, b":{\"balance\":", |out| wide_quantity(out, known.balance));
            if self.options.code && !known.code.is_empty() {
                member(out, b",\"code\":", |out| data(out, &known.code));
            }
            if let Some(hash) = known.code_hash {
                member(out, b",\"codeHash\":", |out| data(out, hash));
            }
            if known.nonce > 0 {
                member(out, b",\"nonce\":", |out| decimal(out, known.nonce));
            }
            write_slots(out, &known.storage);
            out.push(b'}');
        }
        text.push(b"}");
    }

    fn write_change(&self, out: &mut Vec<u8>, address: &Address, before: &Known, after: &Known) {
        data(out, address);
        out.extend_from_slice(b":{");
        let start = out.len();
        if before.balance != after.balance {
            member(out, b",\"balance\":", |out| wide_quantity(out, after.balance));
        }
        if self.options.code && before.code != after.code && !after.code.is_empty() {
            member(out, b",\"code\":", |out| data(out, &after.code));
        }
        if before.code_hash != after.code_hash {
            let hash = after.code_hash.unwrap_or_default();
            member(out, b",\"codeHash\":", |out| data(out, hash));
        }
        if before.nonce != after.nonce && after.nonce > 0 {
            member(out, b",\"nonce\":", |out| decimal(out, after.nonce));
        }
        write_slots(out, &after.storage);
        if out.len() > start {
            out.remove(start);
        }
        out.push(b'}');
    }
}

impl Known {
    fn is_empty(&self) -> bool {
        self.nonce == 0 && self.balance.is_zero() && self.code.is_empty()
    }
}

fn write_slots(out: &mut Vec<u8>, slots: &BTreeMap<U256, U256>) {
    for (place, (slot, value)) in slots.iter().enumerate() {
        out.extend_from_slice(if place == 0 { b",\"storage\":{" } else { b"," });
        data(out, B256::from(*slot));
        out.push(b':');
        data(out, B256::from(*value));
    }
    if !slots.is_empty() {
        out.push(b'}');
    }
}

fn read(overlay: &Overlay, address: &Address, slots: &BTreeSet<U256>) -> Result<Known> {
    let mut known = Known::default();
    if let Some(account) = overlay.account(address)? {
        known.balance = account.balance;
        known.nonce = account.nonce;
        known.code_hash = Some(account.code_hash).filter(|hash| *hash != KECCAK256_EMPTY);
        known.code = overlay.code(address)?;
    }
    for slot in slots {
        known.storage.insert(*slot, overlay.storage(address, slot)?);
    }
    Ok(known)
}

/// The contract that CREATE2 would create; memory that is not allocated yet reads as zeros.
fn create2<CTX: Traced>(
    interpreter: &Interpreter<EthInterpreter>,
    context: &mut CTX,
    contract: Address,
    stack: &[U256],
) -> Option<Look> {
    const MOST: usize = 1 << 20;
    let at = |below: usize| stack[stack.len() - 1 - below];
    let (offset, size) = (usize::try_from(at(1)).ok(), usize::try_from(at(2)).ok()?);
    if size > MOST || context.watch().work(work::hash(size as u64)) {
        return None;
    }
    let mut code = vec![0; size];
    if size > 0 {
        let memory = interpreter.memory.context_memory();
        let offset = offset?;
        let end = memory.len().min(offset.saturating_add(size));
        if let Some(there) = memory.get(offset..end) {
            code[..there.len()].copy_from_slice(there);
        }
    }
    Some(Look::Creates(contract.create2(B256::from(at(3)), keccak256(code))))
}
