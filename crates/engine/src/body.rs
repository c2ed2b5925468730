//! A block being put together from transactions that have run.
//!
//! It keeps what the header of a block commits to, encodings and receipts, on this side
//! of the seam, and fills the header in at the end. The rest of the header is the
//! caller's, who knows the rules of the chain.

use alloy_primitives::{B256, Bytes, Log};

use crate::block::{Block, Withdrawal, transactions_root};
use crate::error::Result;
use crate::header::Header;
use crate::outcome::Outcome;
use crate::receipt::{Receipt, ReceiptOutcome, logs_bloom, receipts_root};
use crate::transaction::Transaction;

#[derive(Debug, Default)]
pub struct Body {
    transactions: Vec<Bytes>,
    receipts: Vec<Receipt>,
    gas_used: u64,
}

impl Body {
    /// Adds a transaction with its outcome; `post_state` takes the place of the status
    /// before Byzantium.
    pub fn push(&mut self, transaction: &Transaction, outcome: &Outcome, post_state: Option<B256>) {
        self.gas_used = self.gas_used.saturating_add(outcome.gas_used);
        self.transactions.push(transaction.raw.clone());
        self.receipts.push(Receipt {
            tx_type: transaction.fields().ty(),
            outcome: match post_state {
                Some(root) => ReceiptOutcome::PostState(root),
                None => ReceiptOutcome::Status(outcome.is_success()),
            },
            cumulative_gas_used: self.gas_used,
            logs: outcome.logs.clone(),
            deposit_nonce: None,
            deposit_receipt_version: None,
        });
    }

    pub fn gas_used(&self) -> u64 {
        self.gas_used
    }

    pub fn len(&self) -> usize {
        self.transactions.len()
    }

    pub fn is_empty(&self) -> bool {
        self.transactions.is_empty()
    }

    /// All logs as receipts have them, in order.
    pub fn logs(&self) -> impl Iterator<Item = &Log> {
        self.receipts.iter().flat_map(|receipt| &receipt.logs)
    }

    /// The block with this header, in which gas used, the roots of transactions and
    /// receipts and the bloom are those of the body.
    pub fn seal(&self, header: &Header, withdrawals: Option<Vec<Withdrawal>>) -> Result<Block> {
        let mut fields = header.fields().clone();
        fields.gas_used = self.gas_used;
        fields.transactions_root = transactions_root(&self.transactions);
        fields.receipts_root = receipts_root(&self.receipts);
        fields.logs_bloom = logs_bloom(&self.receipts);
        let header = Header::new(fields)?;
        Ok(Block::new(header, self.transactions.clone(), Vec::new(), withdrawals))
    }
}

#[cfg(test)]
mod tests {
    use alloy_primitives::{Address, Bloom, LogData};
    use alloy_trie::EMPTY_ROOT_HASH;

    use super::*;
    use crate::header::Fields;
    use crate::message::Message;
    use crate::outcome::Status;
    use crate::transaction::unsigned;

    fn outcome(gas_used: u64, logs: Vec<Log>) -> Outcome {
        Outcome {
            status: Status::Success,
            gas_used,
            max_gas_used: gas_used,
            output: Bytes::new(),
            logs,
            created: None,
            collected: None,
        }
    }

    #[test]
    fn a_sealed_block_commits_to_what_was_pushed() {
        let log = Log {
            address: Address::repeat_byte(1),
            data: LogData::new(vec![B256::repeat_byte(2)], Bytes::new()).expect("few topics"),
        };
        let transaction = unsigned(&Message::default(), 2, 1, 0).expect("a transaction");
        let mut body = Body::default();
        body.push(&transaction, &outcome(21_000, vec![log.clone()]), None);
        body.push(&transaction, &outcome(30_000, vec![]), None);

        let block = body.seal(&Header::new(Fields::default()).expect("a header"), None);
        let block = block.expect("a block");
        assert_eq!(block.header.gas_used, 51_000);
        assert_eq!(block.header.logs_bloom, [log].iter().collect::<Bloom>());
        assert_eq!(
            block.header.transactions_root,
            alloy_trie::root::ordered_trie_root_encoded(&[&transaction.raw, &transaction.raw])
        );
        assert_ne!(block.header.receipts_root, EMPTY_ROOT_HASH);
        assert_eq!(block.size, block.encode().len());
    }

    #[test]
    fn an_empty_body_has_empty_roots() {
        let header = Header::new(Fields::default()).expect("a header");
        let block = Body::default().seal(&header, None).expect("a block");
        assert_eq!(block.header.transactions_root, EMPTY_ROOT_HASH);
        assert_eq!(block.header.receipts_root, EMPTY_ROOT_HASH);
    }
}
