//! The body of a block built from calls executed in it.
//!
//! Encodings and receipts stay in Rust. At the end the header fields that commit to them are filled
//! in, and all hashes of the block are computed together. The caller knows the rules of the
//! chain and provides the rest of the header.

use std::{iter, mem, sync::Arc, time::Instant};

use alloy_primitives::{B256, Bloom, BloomInput, Bytes, Log};

use crate::{
    codec::{
        block::{Block, Withdrawal},
        header::{Fields, Header},
        receipt::{ReceiptFields, ReceiptOutcome},
        transaction::{Transaction, encode_unsigned, unsigned},
    },
    error::{Error, Result},
    evm::{
        env::Env,
        execute::{self, Options},
        outcome::Outcome,
        overlay::Overlay,
        transfers::Collect,
    },
    message::Message,
    missing_keys::Missed,
    params::PlainCall,
    trie::{keccak::hash_all, ordered_root::Leaves},
};

#[derive(Debug, Default)]
pub struct Body {
    calls: Vec<Call>,
    gas_used: u64,
    output_size: usize,
    next_log_index: u64,
    /// Keys missed by calls. If not empty, the block cannot be sealed.
    missing: Missed,
}

/// The limits of plain calls together.
#[derive(Debug, Clone, Copy)]
pub struct CallsBudget {
    /// The gas left in the block. No call may request more.
    pub block: u64,
    /// The gas left for the whole request. Calls are limited to it.
    pub request: u64,
    /// When to stop between calls.
    pub until: Option<Instant>,
}

/// The progress of plain calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallsRun {
    pub calls: usize,
    pub gas_used: u64,
}

/// An executed call, and the transaction it is shown as.
#[derive(Debug)]
pub(super) struct Call {
    message: Arc<Message>,
    tx_type: u8,
    nonce: u64,
    chain_id: u64,
    raw: Bytes,
    pub(super) outcome: Arc<Outcome>,
    /// The call received less gas than the block would allow.
    pub(super) lowered: bool,
    /// Gas used in the block up to and including this call.
    cumulative_gas_used: u64,
    /// The state root that replaces the status in its receipt before Byzantium.
    post_state: Option<B256>,
}

/// The transaction that a call is shown as.
#[derive(Debug, Clone, Copy)]
pub struct CallView {
    /// 0, 2, 3 or 4.
    pub tx_type: u8,
    /// `None` takes the nonce of the sender from the state.
    pub nonce: Option<u64>,
    /// True if the call received less gas than the block would allow.
    pub lowered: bool,
}

impl Body {
    /// Executes the next call of the block and returns the gas it used. Its effects are committed
    /// to the overlay, and the call is added to the block. Nothing is changed on error.
    ///
    /// # Errors
    ///
    /// Those of `execute::run`, and `InvalidArgument` for a type that does not fit the message.
    pub fn run(
        &mut self,
        overlay: &mut Overlay,
        env: &Env,
        message: &Arc<Message>,
        shown: CallView,
        trace_transfers: bool,
        options: Options,
    ) -> Result<u64> {
        let nonce = match shown.nonce {
            Some(nonce) => nonce,
            None => match overlay.account_or_default(&message.from) {
                // The run will record this key too.
                Err(Error::StateMissing(_)) => 0,
                read => read?.map_or(0, |account| account.nonce),
            },
        };
        let raw = encode_unsigned(message, shown.tx_type, env.chain_id, nonce)?;
        let collect = Collect { transfers: trace_transfers, next_index: self.next_log_index };
        let options = Options { collect: Some(collect), ..options };
        let missing = Some(&mut self.missing);
        let outcome = execute::run_collecting(overlay, env, message, options, missing)?;
        let gas_used = outcome.gas_used;
        self.gas_used = self.gas_used.saturating_add(gas_used);
        self.output_size += outcome.output.len();
        if let Some(collected) = &outcome.collected {
            self.next_log_index = collected.next_index;
        }
        self.calls.push(Call {
            message: message.clone(),
            tx_type: shown.tx_type,
            nonce,
            chain_id: env.chain_id,
            raw,
            outcome: Arc::new(outcome),
            lowered: shown.lowered,
            cumulative_gas_used: self.gas_used,
            post_state: None,
        });
        Ok(gas_used)
    }

    /// Executes plain calls in order until one needs a decision by the caller: one that requests
    /// more gas than is left, cannot start, or takes too long. `options` is called for each call.
    ///
    /// # Errors
    ///
    /// The error of a state read, and `InvalidArgument` as in `run`.
    #[expect(clippy::too_many_arguments, reason = "what a run needs, and what bounds it")]
    pub fn run_plain(
        &mut self,
        overlay: &mut Overlay,
        env: &Env,
        calls: &[PlainCall],
        tx_type: u8,
        mut budget: CallsBudget,
        trace_transfers: bool,
        options: impl Fn() -> Options,
    ) -> Result<CallsRun> {
        let until = budget.until;
        let is_late = |at: usize| at > 0 && until.is_some_and(|end| Instant::now() >= end);
        let mut ran = CallsRun::default();
        self.calls.reserve(calls.len());
        for call in calls {
            let asked = call.gas.unwrap_or(budget.block);
            if asked > budget.block || is_late(ran.calls) {
                break;
            }
            let gas = asked.min(budget.request);
            let shown = CallView { tx_type, nonce: None, lowered: gas < asked };
            let message = Arc::new(Message { gas, ..call.message.clone() });
            match self.run(overlay, env, &message, shown, trace_transfers, options()) {
                // No call uses more gas than it was given.
                Ok(used) => {
                    budget.block = budget.block.saturating_sub(used);
                    budget.request = budget.request.saturating_sub(used);
                    ran = CallsRun { calls: ran.calls + 1, gas_used: ran.gas_used + used };
                }
                Err(Error::InvalidMessage(_) | Error::DeadlineExceeded) => break,
                Err(other) => return Err(other),
            }
        }
        Ok(ran)
    }

    /// Replaces the status in the last receipt by a state root, as before Byzantium.
    pub fn set_post_state(&mut self, root: B256) {
        if let Some(last) = self.calls.last_mut() {
            last.post_state = Some(root);
        }
    }

    /// Fails if a call missed state: the results of all calls are then invalid.
    ///
    /// # Errors
    ///
    /// `StateMissing` with the keys missed by all calls.
    pub fn check_known(&self) -> Result<()> {
        self.missing.check()
    }

    pub fn gas_used(&self) -> u64 {
        self.gas_used
    }

    /// The total size of the return data of all calls in bytes.
    pub fn output_size(&self) -> usize {
        self.output_size
    }

    pub fn len(&self) -> usize {
        self.calls.len()
    }

    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// All logs in order, as in the receipts.
    pub fn logs(&self) -> impl Iterator<Item = &Log> {
        self.calls.iter().flat_map(|call| &call.outcome.logs)
    }

    /// Builds the block with this header, whose gas used, transactions root, receipts root and
    /// bloom are replaced by those of the body.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the header has a field without the fields of earlier forks,
    /// `StateMissing` if calls missed state.
    pub fn seal(
        mut self,
        header: Fields,
        withdrawals: Option<Vec<Withdrawal>>,
    ) -> Result<SealedBody> {
        self.check_known()?;
        let all = Receipts::new(&self.calls);
        let raws: Vec<Bytes> = self.calls.iter_mut().map(|call| mem::take(&mut call.raw)).collect();
        let (transactions, receipts) = (Leaves::new(&raws), Leaves::new(&all.encoded()));

        let mut texts: Vec<&[u8]> = raws.iter().map(AsRef::as_ref).collect();
        texts.extend(transactions.nodes().chain(receipts.nodes()));
        let mut hashes = hash_all(&texts);
        let leaves = hashes.split_off(raws.len());
        let (of_transactions, of_receipts) = leaves.split_at(raws.len());

        let header = Header::new(Fields {
            gas_used: self.gas_used,
            transactions_root: transactions.root(of_transactions),
            receipts_root: receipts.root(of_receipts),
            logs_bloom: all.bloom,
            ..header
        })?;
        let block = Block::new(header, raws, Vec::new(), withdrawals);
        Ok(SealedBody { block, hashes, calls: self.calls })
    }
}

impl Call {
    fn encode_receipt(&self, bloom: &Bloom, out: &mut Vec<u8>) {
        let status = ReceiptOutcome::Status(self.outcome.is_success());
        let fields = ReceiptFields {
            tx_type: self.tx_type,
            outcome: self.post_state.map_or(status, ReceiptOutcome::PostState),
            cumulative_gas_used: self.cumulative_gas_used,
            bloom,
            logs: &self.outcome.logs,
        };
        fields.encode(None, out);
    }
}

/// The receipts of a block as encoded in the receipts trie.
struct Receipts {
    /// The bloom of all receipts.
    bloom: Bloom,
    encoded: Vec<u8>,
    /// The end offset of each receipt in `encoded`.
    ends: Vec<usize>,
}

impl Receipts {
    fn new(calls: &[Call]) -> Self {
        let logs = || calls.iter().flat_map(|call| &call.outcome.logs);
        let encoded = Vec::with_capacity(300 * calls.len() + 200 * logs().count());
        let ends = Vec::with_capacity(calls.len());
        let mut all = Self { bloom: Bloom::ZERO, encoded, ends };
        let mut hashes = hash_logs(logs()).into_iter();
        for call in calls {
            let (mut bloom, logs) = (Bloom::ZERO, &call.outcome.logs);
            if !logs.is_empty() {
                let count = logs.iter().map(|log| 1 + log.topics().len()).sum();
                hashes.by_ref().take(count).for_each(|hash| bloom.accrue(BloomInput::Hash(hash)));
                all.bloom.accrue_bloom(&bloom);
            }
            call.encode_receipt(&bloom, &mut all.encoded);
            all.ends.push(all.encoded.len());
        }
        all
    }

    fn encoded(&self) -> Vec<&[u8]> {
        let starts = iter::once(&0).chain(&self.ends);
        starts.zip(&self.ends).map(|(start, end)| &self.encoded[*start..*end]).collect()
    }
}

/// The hashes of the address and topics of each log, in order.
pub(crate) fn hash_logs<'a>(logs: impl Iterator<Item = &'a Log>) -> Vec<B256> {
    let (mut texts, mut places): (Vec<&[u8]>, Vec<usize>) = Default::default();
    // The positions in `texts` of the previous log's address and topics, most of which repeat.
    let mut before = Vec::new();
    for log in logs {
        let topics = log.topics().iter().map(|topic| topic.as_slice());
        let each = iter::once(log.address.as_slice()).chain(topics);
        before = each
            .enumerate()
            .map(|(position, text)| match before.get(position) {
                Some(&place) if texts[place] == text => place,
                _ => {
                    texts.push(text);
                    texts.len() - 1
                }
            })
            .collect();
        places.extend_from_slice(&before);
    }
    let hashes = hash_all(&texts);
    places.into_iter().map(|place| hashes[place]).collect()
}

/// A finished block with the outcomes of its calls.
#[derive(Debug)]
pub struct SealedBody {
    pub block: Block,
    /// Transaction hashes, in order.
    pub hashes: Vec<B256>,
    pub(super) calls: Vec<Call>,
}

impl SealedBody {
    pub fn outcomes(&self) -> impl Iterator<Item = &Arc<Outcome>> {
        self.calls.iter().map(|call| &call.outcome)
    }

    /// The transactions that the calls are shown as.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` as in `run`.
    pub fn transactions(&self) -> Result<Vec<Transaction>> {
        let shown = |call: &Call| unsigned(&call.message, call.tx_type, call.chain_id, call.nonce);
        self.calls.iter().map(shown).collect()
    }
}

#[cfg(test)]
mod tests;
