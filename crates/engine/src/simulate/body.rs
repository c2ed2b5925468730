//! A block being put together from calls that are run in it.
//!
//! It keeps what the header of a block commits to, encodings and receipts, on this side
//! of the seam, and fills the header in at the end; everything of a block that is hashed
//! is hashed then, together. The rest of the header is the caller's, who knows the rules
//! of the chain.

use std::{sync::Arc, time::Instant};

use alloy_primitives::{B256, Bloom, BloomInput, Bytes, Log};

use crate::{
    codec::{
        block::{Block, Withdrawal},
        header::{Fields, Header},
        json::{self, BlockText, FailureText, Place},
        receipt::{ReceiptFields, ReceiptOutcome},
        transaction::{Transaction, encode_unsigned, unsigned},
    },
    error::{Error, Result},
    evm::{
        env::Env,
        execute::{self, Options},
        message::Message,
        outcome::Outcome,
        overlay::Overlay,
        transfers::Collect,
    },
    missing_keys::Missed,
    trie::{keccak::hash_all, ordered_root::Leaves},
};

#[derive(Debug, Default)]
pub struct Body {
    calls: Vec<Call>,
    gas_used: u64,
    output_size: usize,
    next_log_index: u64,
    /// What calls have missed: there is no block then.
    missing: Missed,
}

/// A call that offers nothing for gas.
#[derive(Debug, Clone)]
pub struct PlainCall {
    /// The gas of it is not looked at.
    pub message: Message,
    /// What it asks for; all that is left when it does not say.
    pub gas: Option<u64>,
}

/// What plain calls may use together.
#[derive(Debug, Clone, Copy)]
pub struct CallsBudget {
    /// The gas that is left in the block. No call may ask for more.
    pub block: u64,
    /// The gas that is left altogether. No call gets more.
    pub request: u64,
    /// When to stop between two calls.
    pub until: Option<Instant>,
}

/// How far plain calls went.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallsRun {
    pub calls: usize,
    pub gas_used: u64,
}

/// A call that has run, and the transaction it is shown as.
#[derive(Debug)]
struct Call {
    message: Arc<Message>,
    tx_type: u8,
    nonce: u64,
    chain_id: u64,
    raw: Bytes,
    outcome: Arc<Outcome>,
    /// It could have had more gas in the block.
    lowered: bool,
    /// Gas used in the block up to and including this call.
    cumulative_gas_used: u64,
    /// What takes the place of the status in its receipt, before Byzantium.
    post_state: Option<B256>,
}

/// The transaction that a call is shown as.
#[derive(Debug, Clone, Copy)]
pub struct CallView {
    /// 0, 2, 3 or 4.
    pub tx_type: u8,
    /// What the state says of the sender when it is not given.
    pub nonce: Option<u64>,
    /// Whether the call could have had more gas in the block.
    pub lowered: bool,
}

impl Body {
    /// Runs the next call of the block and gives the gas it used; its effects are kept in
    /// the overlay, and it joins the block. After an error nothing has changed.
    ///
    /// # Errors
    ///
    /// Those of `execute::run`, and `InvalidArgument` for a type that the message does not fit.
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
                // The run will miss it too.
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

    /// Runs plain calls one after the other for as long as nothing has to be decided: up to
    /// one that asks for more gas than there is, that may not begin or that takes long.
    /// `options` are made anew for each.
    ///
    /// # Errors
    ///
    /// What reading the state failed with, and `InvalidArgument` as in `run`.
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
        for call in calls {
            let asked = call.gas.unwrap_or(budget.block);
            if asked > budget.block || is_late(ran.calls) {
                break;
            }
            let gas = asked.min(budget.request);
            let shown = CallView { tx_type, nonce: None, lowered: gas < asked };
            let message = Arc::new(Message { gas, ..call.message.clone() });
            match self.run(overlay, env, &message, shown, trace_transfers, options()) {
                // No call uses more than it was given.
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

    /// Puts a state root in the place of the status in the last receipt, as before Byzantium.
    pub fn set_post_state(&mut self, root: B256) {
        if let Some(last) = self.calls.last_mut() {
            last.post_state = Some(root);
        }
    }

    /// Fails where a call has missed something: what all of them came to counts for nothing.
    ///
    /// # Errors
    ///
    /// `StateMissing` with what all calls have missed.
    pub fn check_known(&self) -> Result<()> {
        self.missing.check()
    }

    pub fn gas_used(&self) -> u64 {
        self.gas_used
    }

    /// The bytes that all calls have returned.
    pub fn output_size(&self) -> usize {
        self.output_size
    }

    pub fn len(&self) -> usize {
        self.calls.len()
    }

    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// All logs as receipts have them, in order.
    pub fn logs(&self) -> impl Iterator<Item = &Log> {
        self.calls.iter().flat_map(|call| &call.outcome.logs)
    }

    /// The block with this header, in which gas used, the roots of transactions and
    /// receipts and the bloom are those of the body.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` when the header has a field without one that came before it,
    /// `StateMissing` where calls have missed something.
    pub fn seal(self, header: Fields, withdrawals: Option<Vec<Withdrawal>>) -> Result<SealedBody> {
        self.check_known()?;
        let (logs_bloom, receipts) = encode_receipts(&self.calls);
        let raws: Vec<Bytes> = self.calls.iter().map(|call| call.raw.clone()).collect();
        let (transactions, receipts) = (Leaves::new(&raws), Leaves::new(&receipts));

        let mut texts: Vec<&[u8]> = raws.iter().map(AsRef::as_ref).collect();
        texts.extend(transactions.nodes().chain(receipts.nodes()));
        let mut hashes = hash_all(&texts);
        let leaves = hashes.split_off(raws.len());
        let (of_transactions, of_receipts) = leaves.split_at(raws.len());

        let header = Header::new(Fields {
            gas_used: self.gas_used,
            transactions_root: transactions.root(of_transactions),
            receipts_root: receipts.root(of_receipts),
            logs_bloom,
            ..header
        })?;
        let block = Block::new(header, raws, Vec::new(), withdrawals);
        Ok(SealedBody { block, hashes, calls: self.calls })
    }
}

impl Call {
    fn encode_receipt(&self, bloom: &Bloom) -> Vec<u8> {
        let status = ReceiptOutcome::Status(self.outcome.is_success());
        let fields = ReceiptFields {
            tx_type: self.tx_type,
            outcome: self.post_state.map_or(status, ReceiptOutcome::PostState),
            cumulative_gas_used: self.cumulative_gas_used,
            bloom,
            logs: &self.outcome.logs,
        };
        let mut out = Vec::with_capacity(300 + 200 * self.outcome.logs.len());
        fields.encode(None, &mut out);
        out
    }
}

/// The bloom of all receipts, and each receipt as in its trie.
fn encode_receipts(calls: &[Call]) -> (Bloom, Vec<Vec<u8>>) {
    let hashes = hash_logs(calls.iter().flat_map(|call| &call.outcome.logs));
    let mut hashes = hashes.into_iter();
    let mut all = Bloom::ZERO;
    let encode = |call: &Call| {
        let count = call.outcome.logs.iter().map(|log| 1 + log.topics().len()).sum();
        let mut bloom = Bloom::ZERO;
        hashes.by_ref().take(count).for_each(|hash| bloom.accrue(BloomInput::Hash(hash)));
        all.accrue_bloom(&bloom);
        call.encode_receipt(&bloom)
    };
    let encoded = calls.iter().map(encode).collect();
    (all, encoded)
}

/// The hashes of address and topics of each log, in order.
fn hash_logs<'a>(logs: impl Iterator<Item = &'a Log>) -> Vec<B256> {
    let (mut texts, mut places): (Vec<&[u8]>, Vec<usize>) = Default::default();
    // Where the log before has its address and topics among the texts: most of them are the
    // same again.
    let mut before = Vec::new();
    for log in logs {
        let topics = log.topics().iter().map(|topic| topic.as_slice());
        let each = std::iter::once(log.address.as_slice()).chain(topics);
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

/// A block that is finished, with what came of its calls.
#[derive(Debug)]
pub struct SealedBody {
    pub block: Block,
    /// Of the transactions, in order.
    pub hashes: Vec<B256>,
    calls: Vec<Call>,
}

impl SealedBody {
    pub fn outcomes(&self) -> impl Iterator<Item = &Arc<Outcome>> {
        self.calls.iter().map(|call| &call.outcome)
    }

    /// Whether a call could have had more gas in the block, for each.
    pub fn lowered(&self) -> impl Iterator<Item = bool> {
        self.calls.iter().map(|call| call.lowered)
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

    /// The block as a JSON object, with the results of its calls. `failures` tells of each
    /// call that failed, in order; `transactions` is an array to be shown instead of hashes.
    pub fn json<'a>(
        &self,
        failures: impl IntoIterator<Item = FailureText<'a>>,
        transactions: Option<&[u8]>,
    ) -> Vec<u8> {
        let mut out = Vec::with_capacity(2048 + 256 * self.calls.len());
        self.write_beginning(&mut out, transactions);
        let (block, mut failures) = (BlockText::new(&self.block.header), failures.into_iter());
        for index in 0..self.calls.len() {
            self.write_result(&mut out, &block, index, || failures.next());
        }
        out.extend_from_slice(RESULTS_END);
        out
    }

    /// About how long the results of all calls are as text, failures apart.
    pub fn results_size(&self) -> usize {
        let size = |call: &Call| {
            let logs = call.outcome.logs.iter().map(|log| 700 + 2 * log.data.data.len());
            256 + 2 * call.outcome.output.len() + logs.sum::<usize>()
        };
        self.calls.iter().map(size).sum()
    }

    /// The block object up to the first result of a call.
    pub fn write_beginning(&self, out: &mut Vec<u8>, transactions: Option<&[u8]>) {
        out.push(b'{');
        json::header(out, &self.block.header, self.block.size);
        out.extend_from_slice(b",\"uncles\":[]");
        if let Some(withdrawals) = &self.block.withdrawals {
            out.extend_from_slice(b",\"withdrawals\":");
            json::array(out, withdrawals, json::withdrawal);
        }
        out.extend_from_slice(b",\"transactions\":");
        match transactions {
            Some(array) => out.extend_from_slice(array),
            None => json::array(out, &self.hashes, json::data),
        }
        out.extend_from_slice(b",\"calls\":[");
    }

    /// The result of one call, with a comma before it where it is not the first. After the
    /// last comes `RESULTS_END`. What is told of it is asked for if it failed.
    pub fn write_result<'a>(
        &self,
        out: &mut Vec<u8>,
        block: &BlockText,
        index: usize,
        failure: impl FnOnce() -> Option<FailureText<'a>>,
    ) {
        if index > 0 {
            out.push(b',');
        }
        let outcome = &self.calls[index].outcome;
        let place = Place { block, transaction_hash: self.hashes[index], index };
        let failure = if outcome.is_success() { None } else { failure() };
        json::call(out, outcome, &place, failure);
    }

    pub fn len(&self) -> usize {
        self.calls.len()
    }

    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }
}

/// What ends the results of calls, and the block.
pub const RESULTS_END: &[u8] = b"]}";

#[cfg(test)]
mod tests;
