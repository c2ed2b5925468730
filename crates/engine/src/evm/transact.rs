//! Execution of a block's transactions in order, under consensus rules.
//!
//! All checks are enabled. A transaction that is invalid, or that exceeds the remaining allowance
//! of the block (`allowance`), leaves overlay and progress unchanged. After each transaction the
//! caller may take the overlay's changes; blocks before Byzantium need this for the state root in
//! every receipt.

use std::{
    borrow::Cow,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use alloy_primitives::{Address, B256, Bytes, U256};
use op_alloy_consensus::TxDeposit;
use op_revm::{
    L1BlockInfo, OpSpecId, OpTransaction,
    constants::L1_BLOCK_CONTRACT,
    transaction::{
        deposit::{DEPOSIT_TRANSACTION_TYPE, DepositTransactionParts},
        estimate_tx_compressed_size,
    },
};
use revm::{context::TxEnv, context_interface::either::Either, state::EvmState};

use crate::{
    codec::{
        receipt::{Receipt, ReceiptOutcome},
        transaction::{Envelope, Transaction, named_sender},
    },
    deadline::Watch,
    error::{Error, Result},
    evm::{
        allowance::{Allowance, TIME},
        database::Database,
        env::Env,
        machine::{
            self, Checks, Ethereum, EthereumInput, Failure, Optimism, OptimismInput, Ran, Setup,
            Stocked,
        },
        outcome::Outcome,
        overlay::Overlay,
        rules::Rules,
        settlement::{Refunds, Settlement, refund_at},
    },
    missing_keys::{MOST_KEYS, Missed, MissingKeys},
    state::{AccountState, StateReader},
};

/// The estimated compressed size of a transaction in millionths of a byte: its share of the data
/// that an Optimism chain posts, from Fjord on.
pub fn estimated_compressed_size(raw: &[u8]) -> u64 {
    estimate_tx_compressed_size(raw)
}

/// The resources of the block used by its transactions so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Progress {
    pub transactions: usize,
    /// Before refunds by the sequencer: these do not let more gas into a block.
    pub gas_used: u64,
    /// Refunds by the sequencer.
    refunds: Refunds,
    /// The index in the block of the first of its transactions.
    first: u64,
    /// Used on Optimism from Jovian on.
    pub da_footprint: u64,
    /// The L1 fee values of the current state, if they were read. Reading them takes as long as a
    /// transfer, and only the first transaction of a block changes them.
    l1: Option<L1BlockInfo>,
}

impl Progress {
    pub fn new(gas_used: u64, da_footprint: u64) -> Self {
        Self { gas_used, da_footprint, ..Self::default() }
    }

    /// With the refunds of the block; `first` is the index of the next transaction.
    #[must_use]
    pub fn refunding(self, refunds: Refunds, first: u64) -> Self {
        Self { refunds, first, ..self }
    }

    /// The refund of the next transaction.
    fn refund(&self) -> u64 {
        refund_at(&self.refunds, self.first + self.transactions as u64)
    }

    /// Called after a change of the state by anything but a transaction.
    pub(crate) fn state_changed(&mut self) {
        self.l1 = None;
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Executed {
    pub outcome: Outcome,
    /// The sender's nonce before execution; set for deposits only.
    pub deposit_nonce: Option<u64>,
    /// Fees of an Optimism transaction in addition to gas; `None` for deposits and on Ethereum.
    pub optimism: Option<OptimismFees>,
    /// Gas refunded by the sequencer, which the outcome does not include.
    pub refunded: u64,
}

impl Executed {
    /// The receipt. From Canyon on, that of a deposit has a version.
    pub fn receipt(
        &self,
        tx_type: u8,
        cumulative_gas_used: u64,
        outcome: ReceiptOutcome,
        deposit_receipt_version: Option<u64>,
    ) -> Receipt {
        Receipt {
            tx_type,
            outcome,
            cumulative_gas_used,
            logs: self.outcome.logs.clone(),
            deposit_nonce: self.deposit_nonce,
            deposit_receipt_version,
        }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OptimismFees {
    pub l1_fee: U256,
    pub operator_fee: U256,
    pub da_footprint: u64,
}

const CONSENSUS: Checks =
    Checks { nonce: true, sender_code: true, gas_cap: true, block_gas_limit: true, base_fee: true };

/// Executes the next transaction of the block and commits its effects.
///
/// # Errors
///
/// `InvalidTransaction` if it is not valid in the block, `OverBudget` if it exceeds the allowance,
/// or the error of a state read. No effects are applied in these cases.
pub fn transact(
    overlay: &mut Overlay,
    env: &Env,
    transaction: &Transaction,
    progress: &mut Progress,
    allowance: &mut Allowance,
) -> Result<Executed> {
    transact_watched(overlay, env, transaction, progress, allowance, None)
}

/// Runs a transaction in place of `machine::run`, to record it.
pub(crate) trait Observer {
    fn ethereum<'s>(
        &mut self,
        overlay: &mut Overlay,
        setup: &dyn Fn() -> Setup<'s>,
        input: EthereumInput,
    ) -> Result<Ran, Failure>;

    fn optimism<'s>(
        &mut self,
        overlay: &mut Overlay,
        setup: &dyn Fn() -> Setup<'s>,
        input: OptimismInput,
    ) -> Result<Ran, Failure>;

    /// Called before the effects are committed.
    fn ran(&mut self, overlay: &Overlay, state: &EvmState) -> Result<()>;
}

/// `transact` with an optional observer.
pub(crate) fn transact_watched(
    overlay: &mut Overlay,
    env: &Env,
    transaction: &Transaction,
    progress: &mut Progress,
    allowance: &mut Allowance,
    observer: Option<&mut (dyn Observer + 'static)>,
) -> Result<Executed> {
    let index = progress.transactions;
    allowance.check_time(index)?;
    let checks = checks_of(transaction);
    let l1 = progress.l1.take();
    let block = Block { env, progress, allowance, checks, observer, probing: None, l1 };
    let (executed, after) =
        block.execute(overlay, transaction).map_err(|failure| match failure {
            Failure::Refused(why) => Error::InvalidTransaction { index, why },
            Failure::Broken(Error::DeadlineExceeded) => Error::OverBudget { index, what: TIME },
            Failure::Broken(Error::OverBudget { what, .. }) => Error::OverBudget { index, what },
            Failure::Broken(error) => error,
            Failure::MissingState(missing, _) => Error::StateMissing(missing),
        })?;
    *progress = after;
    Ok(executed)
}

/// Collects the keys that a block's transactions miss. Each transaction is executed on the effects
/// of those before it, with defaults for unknown values and without a nonce check. The overlay is
/// left unchanged.
///
/// Stops at the first transaction that exceeds its gas or touch limit: with defaults, this does not
/// mean that the block is invalid.
///
/// # Errors
///
/// `OverBudget` if the allowance's time has run out, or any error of a state read other than
/// `StateMissing`.
pub fn probe<'a>(
    overlay: &mut Overlay,
    env: &Env,
    transactions: impl IntoIterator<Item = &'a Transaction>,
    progress: &Progress,
    allowance: &mut Allowance,
) -> Result<MissingKeys> {
    let below = Arc::new(Mutex::new(std::mem::take(overlay)));
    let mut above = Overlay::new(Box::new(BorrowedOverlay(below.clone())));
    let mut left = allowance.for_probe(progress.gas_used);
    let missed = probe_above(&mut above, env, transactions, progress.clone(), &mut left);
    allowance.probed(&left);
    drop(above);
    if let Some(below) = Arc::into_inner(below) {
        *overlay = below.into_inner().unwrap_or_else(PoisonError::into_inner);
    }
    missed
}

fn probe_above<'a>(
    overlay: &mut Overlay,
    env: &Env,
    transactions: impl IntoIterator<Item = &'a Transaction>,
    mut progress: Progress,
    allowance: &mut Allowance,
) -> Result<MissingKeys> {
    let mut all = MissingKeys::default();
    for (index, transaction) in transactions.into_iter().enumerate() {
        allowance.check_time(index)?;
        let checks = Checks { nonce: false, ..checks_of(transaction) };
        let (l1, probing) = (progress.l1.take(), Some(&mut all));
        let (observer, progress) = (None, &mut progress);
        let block = Block { env, progress, allowance, checks, observer, probing, l1 };
        let stopped = match block.execute(overlay, transaction) {
            Ok((_, after)) => {
                *progress = after;
                None
            }
            Err(Failure::MissingState(missing, ended)) => {
                all.merge(*missing);
                ended.err().flatten()
            }
            Err(Failure::Broken(Error::StateMissing(missing))) => {
                all.merge(*missing);
                None
            }
            // Invalid transactions are reported when the block is executed.
            Err(Failure::Refused(_) | Failure::Broken(Error::Execution(_))) => None,
            Err(Failure::Broken(error)) => Some(error),
        };
        match stopped {
            None if all.len() < MOST_KEYS => {}
            None => break,
            Some(stop) => {
                allowance.stopped();
                match stop {
                    Error::OverBudget { .. } => break,
                    Error::DeadlineExceeded => {
                        return Err(Error::OverBudget { index, what: TIME });
                    }
                    error => return Err(error),
                }
            }
        }
    }
    Ok(all)
}

/// Shares an overlay as the state underneath another overlay.
struct BorrowedOverlay(Arc<Mutex<Overlay>>);

impl BorrowedOverlay {
    fn overlay(&self) -> MutexGuard<'_, Overlay> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StateReader for BorrowedOverlay {
    fn account(&self, address: &Address) -> Result<Option<AccountState>> {
        self.overlay().account(address)
    }

    fn storage(&self, address: &Address, _generation: u64, slot: &U256) -> Result<U256> {
        self.overlay().storage(address, slot)
    }

    fn code(&self, hash: &B256) -> Result<Bytes> {
        StateReader::code(&*self.overlay(), hash)
    }

    fn block_hash(&self, number: u64) -> Result<B256> {
        self.overlay().block_hash(number)
    }

    fn may_miss(&self) -> bool {
        self.overlay().may_miss()
    }
}

type Step = Result<(Executed, Progress), Failure>;

struct Block<'a> {
    env: &'a Env,
    progress: &'a Progress,
    allowance: &'a mut Allowance,
    checks: Checks,
    observer: Option<&'a mut (dyn Observer + 'static)>,
    /// If set, missing keys are added here and execution continues with defaults.
    probing: Option<&'a mut MissingKeys>,
    l1: Option<L1BlockInfo>,
}

impl Block<'_> {
    fn execute(self, overlay: &mut Overlay, transaction: &Transaction) -> Step {
        match (self.env.rules, &transaction.envelope) {
            (Rules::Ethereum(_), Envelope::Signed(_) | Envelope::Unsigned(_)) => {
                self.ethereum(overlay, transaction)
            }
            (Rules::Optimism(spec), Envelope::Signed(_)) => {
                self.optimism(overlay, transaction, spec)
            }
            (Rules::Optimism(spec), Envelope::Deposit(deposit)) => {
                self.deposit(overlay, deposit, spec)
            }
            (Rules::Optimism(_), Envelope::PostExec(_)) => self.post_exec(),
            (Rules::Ethereum(_), Envelope::Deposit(_)) => {
                Err(refuse("deposits are not transactions of this chain"))
            }
            (Rules::Ethereum(_), Envelope::PostExec(_)) => {
                Err(refuse("post-execution transactions are not transactions of this chain"))
            }
            (Rules::Optimism(_), Envelope::Unsigned(_)) => Err(refuse("nobody signed it")),
        }
    }

    /// Returns the value read. If it is missing, a probe records it and continues with a default.
    fn or_default<T: Default>(&mut self, read: Result<T>) -> Result<T, Failure> {
        match (read, &mut self.probing) {
            (Err(Error::StateMissing(missing)), Some(all)) => {
                all.merge(*missing);
                Ok(T::default())
            }
            (Err(Error::StateMissing(missing)), None) => {
                Err(Failure::MissingState(missing, Err(None)))
            }
            (read, _) => read.map_err(Failure::Broken),
        }
    }

    fn ethereum(mut self, overlay: &mut Overlay, transaction: &Transaction) -> Step {
        let input = transaction_env(transaction)?;
        self.check_gas(input.gas_limit)?;
        let input = EthereumInput::Transaction(input);
        let ran = self.run::<Ethereum>(overlay, input, |it, overlay, setup, input| {
            it.ethereum(overlay, setup, input)
        })?;
        let outcome = self.keep(overlay, ran)?;
        Ok(self.done(Executed { outcome, deposit_nonce: None, optimism: None, refunded: 0 }))
    }

    /// It has no effect of its own: its refunds are settled with the transactions that get them.
    fn post_exec(self) -> Step {
        if self.progress.refunds.is_empty() {
            return Err(refuse("there is no post-execution transaction in this block"));
        }
        let outcome = Outcome::nothing();
        Ok(self.done(Executed { outcome, deposit_nonce: None, optimism: None, refunded: 0 }))
    }

    fn optimism(
        mut self,
        overlay: &mut Overlay,
        transaction: &Transaction,
        spec: OpSpecId,
    ) -> Step {
        let base = transaction_env(transaction)?;
        if !base.blob_hashes.is_empty() || transaction.raw.first() == Some(&0x03) {
            return Err(refuse("there are no blob transactions on this chain"));
        }
        self.check_gas(base.gas_limit)?;
        let mut l1 = match &self.l1 {
            Some(known) => known.clone(),
            None => self.read_l1(overlay, spec)?,
        };
        let da_footprint = self.check_da_footprint(&l1, transaction)?;
        let l1_fee = l1.calculate_tx_l1_cost(&transaction.raw, spec);
        let input = OptimismInput {
            transaction: OpTransaction {
                base,
                enveloped_tx: Some(transaction.raw.clone()),
                deposit: DepositTransactionParts::default(),
            },
            l1: Some(l1.clone()),
        };
        let mut ran = self.run_optimism(overlay, input)?;
        let operator_fee = |gas: u64| match spec.is_enabled_in(OpSpecId::ISTHMUS) {
            true => l1.operator_fee_charge(&transaction.raw, U256::from(gas), spec),
            false => U256::ZERO,
        };
        let (gas, refunded) = (ran.result.tx_gas_used(), self.progress.refund());
        let Some(charged) = gas.checked_sub(refunded) else {
            return Err(refuse(format!("a refund of {refunded} gas, above its {gas}")));
        };
        if refunded > 0 {
            let settlement = Settlement {
                gas: refunded,
                price: transaction.fields().effective_gas_price(Some(self.env.base_fee())),
                base_fee: self.env.base_fee(),
                operator_fee: operator_fee(gas).saturating_sub(operator_fee(charged)),
            };
            let beneficiary = self.env.block.beneficiary;
            settlement.apply(&mut ran.state, transaction.sender, beneficiary).map_err(refuse)?;
        }
        let outcome = Outcome { gas_used: charged, ..self.keep(overlay, ran)? };
        let fees = OptimismFees { l1_fee, operator_fee: operator_fee(charged), da_footprint };
        Ok(self.done(Executed { outcome, deposit_nonce: None, optimism: Some(fees), refunded }))
    }

    fn deposit(mut self, overlay: &mut Overlay, deposit: &TxDeposit, spec: OpSpecId) -> Step {
        // Before Regolith, deposits did not count towards the block's gas.
        if spec.is_enabled_in(OpSpecId::REGOLITH) {
            self.check_gas(deposit.gas_limit)?;
        }
        let read = overlay.account_or_default(&deposit.from);
        let sender = self.or_default(read)?;
        let deposit_nonce = Some(sender.map_or(0, |account| account.nonce));
        let transaction = deposit_transaction(deposit);
        let input = OptimismInput { transaction, l1: None };
        let ran = self.run_optimism(overlay, input)?;
        let outcome = self.keep(overlay, ran)?;
        Ok(self.done(Executed { outcome, deposit_nonce, optimism: None, refunded: 0 }))
    }

    fn run_optimism(
        &mut self,
        overlay: &mut Overlay,
        input: OptimismInput,
    ) -> Result<Ran, Failure> {
        self.run::<Optimism>(overlay, input, |it, overlay, setup, input| {
            it.optimism(overlay, setup, input)
        })
    }

    /// Runs in a kept EVM, or under the observer if there is one. A probe records missing keys and
    /// keeps the result computed with defaults.
    fn run<M: Stocked>(
        &mut self,
        overlay: &mut Overlay,
        input: M::Input,
        observe: impl for<'s> FnOnce(
            &mut dyn Observer,
            &mut Overlay,
            &dyn Fn() -> Setup<'s>,
            M::Input,
        ) -> Result<Ran, Failure>,
    ) -> Result<Ran, Failure> {
        let ran = match self.observer.take() {
            None => machine::run::<M>(overlay, self.setup(), input),
            Some(observer) => {
                let ran = observe(observer, overlay, &|| self.setup(), input);
                self.observer = Some(observer);
                ran
            }
        };
        match (ran, &mut self.probing) {
            (Err(Failure::MissingState(missing, Ok(ran))), Some(all)) => {
                all.merge(*missing);
                Ok(*ran)
            }
            (ran, _) => ran,
        }
    }

    fn setup(&self) -> Setup<'_> {
        Setup {
            env: self.env,
            checks: self.checks,
            limits: self.allowance.limits(self.progress.gas_used, self.env.rules),
            precompiles: None,
            collect: None,
        }
    }

    fn check_gas(&self, gas_limit: u64) -> Result<(), Failure> {
        let left = self.env.gas_limit().saturating_sub(self.progress.gas_used);
        if gas_limit > left {
            return Err(refuse(format!("gas limit {gas_limit} above the block's rest of {left}")));
        }
        Ok(())
    }

    /// Reads the L1 fee values, which already include the block's attributes deposit, and keeps
    /// them if none was missing.
    fn read_l1(&mut self, overlay: &mut Overlay, spec: OpSpecId) -> Result<L1BlockInfo, Failure> {
        let (l1, missing) = read_l1(overlay, self.env, spec).map_err(Failure::Broken)?;
        match missing.check() {
            Ok(()) => self.l1 = Some(l1.clone()),
            Err(error) => self.or_default::<()>(Err(error))?,
        }
        Ok(l1)
    }

    /// From Jovian on, the weighted data size of all transactions must also fit into the block's
    /// gas limit.
    fn check_da_footprint(&self, l1: &L1BlockInfo, tx: &Transaction) -> Result<u64, Failure> {
        let Some(scalar) = l1.da_footprint_gas_scalar else { return Ok(0) };
        let size = estimate_tx_compressed_size(&tx.raw) / 1_000_000;
        let footprint = size.saturating_mul(u64::from(scalar));
        let left = self.env.gas_limit().saturating_sub(self.progress.da_footprint);
        if footprint > left {
            return Err(refuse(format!(
                "data footprint {footprint} above the block's rest of {left}"
            )));
        }
        Ok(footprint)
    }

    /// Charges the run to the allowance and commits its effects.
    fn keep(&mut self, overlay: &mut Overlay, ran: Ran) -> Result<Outcome, Failure> {
        let gas_used = self.progress.gas_used.saturating_add(ran.result.tx_gas_used());
        self.allowance.spend(ran.spent, gas_used).map_err(Failure::Broken)?;
        if let Some(observer) = &mut self.observer {
            observer.ran(overlay, &ran.state).map_err(Failure::Broken)?;
        }
        if ran.state.contains_key(&L1_BLOCK_CONTRACT) {
            self.l1 = None;
        }
        overlay.commit(ran.state);
        Ok(Outcome::new(ran.result, ran.collected, ran.undefined_opcode))
    }

    fn done(self, executed: Executed) -> (Executed, Progress) {
        let footprint = executed.optimism.map_or(0, |fees| fees.da_footprint);
        let gas = executed.outcome.gas_used.saturating_add(executed.refunded);
        let after = Progress {
            transactions: self.progress.transactions + 1,
            gas_used: self.progress.gas_used.saturating_add(gas),
            da_footprint: self.progress.da_footprint.saturating_add(footprint),
            refunds: self.progress.refunds.clone(),
            first: self.progress.first,
            l1: self.l1,
        };
        (executed, after)
    }
}

fn refuse(why: impl Into<Cow<'static, str>>) -> Failure {
    Failure::Refused(why.into().into_owned())
}

fn transaction_env(transaction: &Transaction) -> Result<TxEnv, Failure> {
    match &transaction.envelope {
        Envelope::Signed(_) => {}
        Envelope::Deposit(_) | Envelope::PostExec(_) => {
            return Err(refuse("a system transaction where none can be"));
        }
        Envelope::Unsigned(envelope) if named_sender(envelope) == Some(transaction.sender) => {}
        Envelope::Unsigned(_) => return Err(refuse("nobody signed it")),
    }
    let fields = transaction.fields();
    Ok(TxEnv {
        tx_type: fields.ty(),
        caller: transaction.sender,
        gas_limit: fields.gas_limit(),
        gas_price: fields.max_fee_per_gas(), // the gas price of legacy and EIP-2930 types
        kind: fields.kind(),
        value: fields.value(),
        data: fields.input().clone(),
        nonce: fields.nonce(),
        chain_id: fields.chain_id(),
        access_list: fields.access_list().cloned().unwrap_or_default(),
        gas_priority_fee: fields.max_priority_fee_per_gas(),
        blob_hashes: fields.blob_versioned_hashes().unwrap_or_default().to_vec(),
        max_fee_per_blob_gas: fields.max_fee_per_blob_gas().unwrap_or_default(),
        authorization_list: transaction
            .recovered_authorizations()
            .into_iter()
            .map(Either::Right)
            .collect(),
    })
}

/// All checks, except EIP-3607 for unsigned transactions, which have no signing key.
fn checks_of(transaction: &Transaction) -> Checks {
    match &transaction.envelope {
        Envelope::Unsigned(_) => Checks { sender_code: false, ..CONSENSUS },
        Envelope::Signed(_) | Envelope::Deposit(_) | Envelope::PostExec(_) => CONSENSUS,
    }
}

fn deposit_transaction(deposit: &TxDeposit) -> OpTransaction<TxEnv> {
    OpTransaction {
        base: TxEnv {
            // Set explicitly: by source hash alone, a deposit with the zero hash is not recognised.
            tx_type: DEPOSIT_TRANSACTION_TYPE,
            caller: deposit.from,
            gas_limit: deposit.gas_limit,
            kind: deposit.to,
            value: deposit.value,
            data: deposit.input.clone(),
            chain_id: None,
            ..TxEnv::default()
        },
        enveloped_tx: None,
        deposit: DepositTransactionParts {
            source_hash: deposit.source_hash,
            mint: Some(deposit.mint),
            is_system_transaction: deposit.is_system_transaction,
        },
    }
}

/// Reads the L1 fee values of the current state, which already includes the block's attributes
/// deposit, and the keys that were missing.
fn read_l1(overlay: &mut Overlay, env: &Env, spec: OpSpecId) -> Result<(L1BlockInfo, Missed)> {
    let mut database = Database::new(std::mem::take(overlay), Watch::default());
    let l1 = L1BlockInfo::try_fetch(&mut database, U256::from(env.number()), spec);
    let Database { overlay: below, missing, .. } = database;
    *overlay = below;
    Ok((l1?, missing))
}

#[cfg(test)]
mod tests;
