//! A block under construction: its transactions are executed, and what its header commits to grows.
//!
//! Transactions are added in any number of runs. The parts that are stored for an index (encodings,
//! senders, receipts, hashes) are collected until they are taken.

use alloy_primitives::{Address, B256, Bloom, BloomInput, Log};

use crate::{
    codec::{
        header::{Fields, Header},
        receipt::{Receipt, ReceiptOutcome},
        transaction::{Decoding, POST_EXEC_TYPE, Transaction},
    },
    error::{Error, Result},
    evm::{
        allowance::Allowance,
        env::Env,
        overlay::Overlay,
        settlement::Refunds,
        transact::{self, Executed, Progress},
    },
    simulate::body::hash_logs,
    state::StateReader,
    trie::ordered_root::GrowingRoot,
};

#[derive(Debug, Default)]
pub struct BlockExecution {
    used: Used,
    rules: BlockRules,
    transactions: GrowingRoot,
    receipts: GrowingRoot,
    logs_bloom: Bloom,
    added: Added,
    refunds: Refunds,
}

/// The rules of a block that execution of a single transaction does not need.
#[derive(Debug, Default, Clone, Copy)]
pub struct BlockRules {
    /// In the receipts of deposits: 1 from Canyon on.
    pub deposit_receipt_version: Option<u64>,
    /// EIP-4844.
    pub max_blobs: Option<u64>,
}

/// What the transactions of a block have used so far.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Used {
    pub transactions: u64,
    pub gas: u64,
    /// Gas of their execution that the sequencer refunds, in addition to `gas`.
    pub refunded: u64,
    pub da_footprint: u64,
    pub blobs: u64,
    pub logs: u64,
    /// Bytes of the transactions.
    pub size: u64,
}

/// Transactions with their senders, receipts and hashes.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Added {
    pub transactions: Vec<Vec<u8>>,
    pub senders: Vec<Address>,
    pub receipts: Vec<Vec<u8>>,
    pub hashes: Vec<B256>,
}

impl BlockExecution {
    pub fn new(rules: BlockRules) -> Self {
        Self { rules, ..Self::default() }
    }

    /// Continues a block after these transactions, whose logs have this bloom.
    ///
    /// # Errors
    ///
    /// None in practice, as `GrowingRoot::push`.
    pub fn resume(
        &mut self,
        used: Used,
        logs_bloom: Bloom,
        transactions: &[impl AsRef<[u8]>],
        receipts: &[impl AsRef<[u8]>],
    ) -> Result<()> {
        (self.used, self.logs_bloom) = (used, logs_bloom);
        transactions.iter().try_for_each(|raw| self.transactions.push(raw.as_ref().to_vec()))?;
        receipts.iter().try_for_each(|each| self.receipts.push(each.as_ref().to_vec()))
    }

    pub fn used(&self) -> Used {
        self.used
    }

    /// Sets the refunds of the transactions that are executed from now on.
    pub fn set_refunds(&mut self, refunds: Refunds) {
        self.refunds = refunds;
    }

    /// Executes the next transactions.
    ///
    /// # Errors
    ///
    /// `InvalidTransaction` and `OverBudget` with the index of the first transaction that does not
    /// run: it is not added, those before it are. `StateMissing` with the missing keys of all
    /// transactions: none is added, and nothing is changed.
    pub fn run(
        &mut self,
        overlay: &mut Overlay,
        env: &Env,
        transactions: &[&Transaction],
        allowance: &mut Allowance,
    ) -> Result<()> {
        let transaction = |index: usize| Ok(transactions[index]);
        self.run_all(overlay, env, transactions.len(), transaction, allowance)
    }

    /// Decodes the next transactions and executes them. Their senders are recovered on all cores,
    /// ahead of the execution. With `named`, a transaction may name its sender.
    ///
    /// # Errors
    ///
    /// As `run`, or `Undecodable` with the index of the first that is not a transaction; those
    /// before it may be added.
    pub fn run_encoded(
        &mut self,
        overlay: &mut Overlay,
        env: &Env,
        raws: Vec<impl AsRef<[u8]> + Send + Sync + 'static>,
        named: bool,
        allowance: &mut Allowance,
    ) -> Result<()> {
        let count = raws.len();
        let decoding = Decoding::start(raws, true, named, 0);
        let ran = self.run_all(overlay, env, count, |index| decoding.get(index), allowance);
        ran.or_else(|error| decoding.check().and(Err(error)))
    }

    fn run_all<'a>(
        &mut self,
        overlay: &mut Overlay,
        env: &Env,
        count: usize,
        transaction: impl Fn(usize) -> Result<&'a Transaction>,
        allowance: &mut Allowance,
    ) -> Result<()> {
        let Used { gas, refunded, da_footprint, transactions: first, .. } = self.used;
        let mut progress = Progress::new(gas.saturating_add(refunded), da_footprint)
            .refunding(self.refunds.clone(), first);
        // Copying the changes of a block takes a fraction of executing a message twice.
        let checkpoint = overlay.may_miss().then(|| (overlay.checkpoint(), allowance.clone()));
        let (mut executed, mut blobs) = (Vec::with_capacity(count), self.used.blobs);
        let mut ended = Ok(());
        for index in 0..count {
            let ran = transaction(index).and_then(|next| {
                let with_its_blobs = self.check_blobs(blobs, index, next)?;
                let ran = transact::transact(overlay, env, next, &mut progress, allowance)?;
                blobs = with_its_blobs;
                Ok((next, ran))
            });
            match ran {
                Ok(ran) => executed.push(ran),
                Err(Error::StateMissing(mut missing)) => {
                    let rest: Result<Vec<_>> = (index..count).map(&transaction).collect();
                    let others = rest
                        .and_then(|rest| transact::probe(overlay, env, rest, &progress, allowance));
                    if let Some((changes, before)) = checkpoint {
                        overlay.restore(changes);
                        allowance.took_back(&before);
                    }
                    missing.merge(others?);
                    return Err(Error::StateMissing(missing));
                }
                Err(error) => {
                    ended = Err(error);
                    break;
                }
            }
        }
        executed.into_iter().try_for_each(|(each, ran)| self.add(each, ran))?;
        self.used.blobs = blobs;
        ended
    }

    /// The blobs of the block with those of the next transaction.
    fn check_blobs(&self, before: u64, index: usize, next: &Transaction) -> Result<u64> {
        let found = next.fields().blob_versioned_hashes().map_or(0, <[_]>::len) as u64;
        match self.rules.max_blobs {
            Some(most) if found > 0 && before + found > most => {
                let why = format!("{} blobs in a block of {most} at most", before + found);
                Err(Error::InvalidTransaction { index, why })
            }
            _ => Ok(before + found),
        }
    }

    /// Adds transactions that were executed elsewhere, whose changes the overlay has.
    ///
    /// `gas_before` is the gas that their receipts count before the first of them; here they count
    /// the gas of this block. `da_footprint` and `blobs` are those of all of them.
    ///
    /// # Errors
    ///
    /// `Undecodable` for a receipt that is none, `InvalidArgument` if their number differs or one
    /// uses less gas than those before it.
    pub fn adopt(
        &mut self,
        transactions: &[&Transaction],
        receipts: &[impl AsRef<[u8]>],
        mut gas_before: u64,
        da_footprint: u64,
        blobs: u64,
    ) -> Result<()> {
        if transactions.len() != receipts.len() {
            return Err(Error::invalid("each transaction has a receipt"));
        }
        let decoded: Result<Vec<_>> =
            receipts.iter().map(|each| Receipt::decode(each.as_ref())).collect();
        for (transaction, receipt) in transactions.iter().zip(decoded?) {
            let gas = receipt.cumulative_gas_used.checked_sub(gas_before);
            self.used.gas += gas.ok_or_else(|| Error::invalid("gas used in a block grows"))?;
            gas_before = receipt.cumulative_gas_used;
            let cumulative_gas_used = self.used.gas;
            self.push(transaction, &Receipt { cumulative_gas_used, ..receipt })?;
        }
        self.used.da_footprint += da_footprint;
        self.used.blobs += blobs;
        Ok(())
    }

    fn add(&mut self, transaction: &Transaction, executed: Executed) -> Result<()> {
        let is_deposit = executed.deposit_nonce.is_some();
        let outcome = ReceiptOutcome::Status(executed.outcome.is_success());
        self.used.gas += executed.outcome.gas_used;
        self.used.refunded += executed.refunded;
        self.used.da_footprint += executed.optimism.map_or(0, |fees| fees.da_footprint);
        let version = self.rules.deposit_receipt_version.filter(|_| is_deposit);
        let receipt = executed.receipt(transaction.fields().ty(), self.used.gas, outcome, version);
        self.push(transaction, &receipt)
    }

    fn push(&mut self, transaction: &Transaction, receipt: &Receipt) -> Result<()> {
        let bloom = bloom(&receipt.logs);
        let mut encoded = Vec::with_capacity(300 + 200 * receipt.logs.len());
        receipt.encode_with_bloom(&bloom, &mut encoded);
        self.logs_bloom.accrue_bloom(&bloom);
        self.transactions.push(transaction.raw.to_vec())?;
        self.receipts.push(encoded.clone())?;
        let Used { transactions, logs, size, .. } = &mut self.used;
        *transactions += 1;
        *logs += receipt.logs.len() as u64;
        *size += transaction.raw.len() as u64;
        self.added.transactions.push(transaction.raw.to_vec());
        self.added.senders.push(transaction.sender);
        self.added.receipts.push(encoded);
        self.added.hashes.push(transaction.hash);
        Ok(())
    }

    /// Gives the receipt of the last transaction a state root in place of its status, as before
    /// Byzantium.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if nothing was added since the last `take`.
    pub fn set_post_state(&mut self, root: B256) -> Result<()> {
        let last = self.added.receipts.last_mut();
        let last = last.ok_or_else(|| Error::invalid("there is no transaction to set it for"))?;
        let receipt =
            Receipt { outcome: ReceiptOutcome::PostState(root), ..Receipt::decode(last)? };
        last.clear();
        receipt.encode_with_bloom(&bloom(&receipt.logs), last);
        self.receipts.replace_last(last.clone())
    }

    /// The number of transactions added since the last `take`.
    pub fn added(&self) -> usize {
        self.added.hashes.len()
    }

    /// The transactions added since the last call.
    pub fn take(&mut self) -> Added {
        std::mem::take(&mut self.added)
    }

    /// Replaces the fields of a header that commit to the transactions so far.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` as `Header::new`.
    pub fn fill(&mut self, header: Fields) -> Result<Header> {
        Header::new(Fields {
            transactions_root: self.transactions.root(),
            receipts_root: self.receipts.root(),
            logs_bloom: self.logs_bloom,
            gas_used: self.used.gas,
            ..header
        })
    }

    /// `fill` as if this post-execution transaction ended the block; also its receipt.
    ///
    /// # Errors
    ///
    /// As `fill`, and as `GrowingRoot::push`.
    pub fn fill_with_end(&mut self, header: Fields, raw: &[u8]) -> Result<(Header, Vec<u8>)> {
        let receipt = receipt_of_end(self.used.gas).encode();
        let (mut transactions, mut receipts) = (self.transactions.clone(), self.receipts.clone());
        transactions.push(raw.to_vec())?;
        receipts.push(receipt.clone())?;
        let (transactions_root, receipts_root) = (transactions.root(), receipts.root());
        let filled = Header::new(Fields {
            transactions_root,
            receipts_root,
            logs_bloom: self.logs_bloom,
            gas_used: self.used.gas,
            ..header
        })?;
        Ok((filled, receipt))
    }
}

/// The receipt of a post-execution transaction.
fn receipt_of_end(cumulative_gas_used: u64) -> Receipt {
    Receipt {
        tx_type: POST_EXEC_TYPE,
        outcome: ReceiptOutcome::Status(true),
        cumulative_gas_used,
        logs: Vec::new(),
        deposit_nonce: None,
        deposit_receipt_version: None,
    }
}

fn bloom(logs: &[Log]) -> Bloom {
    let mut bloom = Bloom::ZERO;
    hash_logs(logs.iter()).into_iter().for_each(|hash| bloom.accrue(BloomInput::Hash(hash)));
    bloom
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_addresses_and_topics_do_not_change_the_bloom() {
        let log = |address: u8, topics: &[u8]| {
            let topics = topics.iter().map(|topic| B256::repeat_byte(*topic)).collect();
            Log::new_unchecked(Address::repeat_byte(address), topics, Default::default())
        };
        let logs = [log(1, &[1, 2]), log(1, &[1, 3]), log(2, &[1]), log(1, &[]), log(1, &[1, 1])];
        for count in 0..=logs.len() {
            assert_eq!(bloom(&logs[..count]), logs[..count].iter().collect::<Bloom>());
        }
    }
}
