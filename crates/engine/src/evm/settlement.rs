//! Refunds of gas by the sequencer (OP stack specification, Lagoon, sequencer-defined metering).
//!
//! The last transaction of a block refunds gas to transactions before it. Each of these is charged
//! for the gas of its execution, and the difference is settled before its effects are committed:
//! the sender gets it back from those who were paid. The L1 fee does not depend on gas.

use std::sync::Arc;

use alloy_primitives::{Address, U256};
use op_revm::constants::{BASE_FEE_RECIPIENT, OPERATOR_FEE_RECIPIENT};
use revm::state::EvmState;

/// The refunds of a block: the index of a transaction and its gas, sorted by index.
pub type Refunds = Arc<[(u64, u64)]>;

/// The refund of the transaction at an index; 0 if it has none.
pub fn refund_at(refunds: &[(u64, u64)], index: u64) -> u64 {
    let found = refunds.binary_search_by_key(&index, |(index, _)| *index);
    found.map_or(0, |place| refunds[place].1)
}

/// The refund of one transaction, and its prices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settlement {
    pub gas: u64,
    /// The effective price, at least the base fee.
    pub price: u128,
    pub base_fee: u64,
    /// The part of the operator fee that the refunded gas cost.
    pub operator_fee: U256,
}

impl Settlement {
    /// Moves the refund from those who were paid to the sender.
    ///
    /// # Errors
    ///
    /// A text if one of them has less than its share; the state is then not valid.
    pub fn apply(
        &self,
        state: &mut EvmState,
        sender: Address,
        beneficiary: Address,
    ) -> Result<(), String> {
        let gas = U256::from(self.gas);
        let paid = gas * U256::from(self.price);
        let base_fee = gas * U256::from(self.base_fee);
        let tip = paid.saturating_sub(base_fee);
        // The sum of what the other three had received: it cannot overflow.
        credit(state, sender, paid.saturating_add(self.operator_fee));
        debit(state, beneficiary, tip)?;
        debit(state, BASE_FEE_RECIPIENT, base_fee)?;
        debit(state, OPERATOR_FEE_RECIPIENT, self.operator_fee)
    }
}

fn credit(state: &mut EvmState, address: Address, amount: U256) {
    // Every sender is in the state of its transaction.
    if let Some(account) = state.get_mut(&address) {
        account.info.balance = account.info.balance.saturating_add(amount);
    }
}

fn debit(state: &mut EvmState, address: Address, amount: U256) -> Result<(), String> {
    let balance = state.get(&address).map_or(U256::ZERO, |account| account.info.balance);
    let left = balance.checked_sub(amount).ok_or_else(|| {
        format!("a refund takes {amount} wei from {address}, which has {balance}")
    })?;
    if let Some(account) = state.get_mut(&address) {
        account.info.balance = left;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use revm::state::{Account, AccountInfo};

    use super::*;

    const SENDER: Address = Address::repeat_byte(1);
    const BENEFICIARY: Address = Address::repeat_byte(2);

    fn state(balances: [(Address, u64); 4]) -> EvmState {
        let account = |balance| {
            Account::from(AccountInfo { balance: U256::from(balance), ..AccountInfo::default() })
        };
        balances.into_iter().map(|(address, balance)| (address, account(balance))).collect()
    }

    const SETTLEMENT: Settlement =
        Settlement { gas: 5, price: 7, base_fee: 4, operator_fee: U256::from_limbs([3, 0, 0, 0]) };

    #[test]
    fn the_sender_gets_what_the_others_had_received() {
        let mut all = state([
            (SENDER, 100),
            (BENEFICIARY, 15),
            (BASE_FEE_RECIPIENT, 20),
            (OPERATOR_FEE_RECIPIENT, 3),
        ]);
        SETTLEMENT.apply(&mut all, SENDER, BENEFICIARY).unwrap();
        let balances = [SENDER, BENEFICIARY, BASE_FEE_RECIPIENT, OPERATOR_FEE_RECIPIENT]
            .map(|address| all[&address].info.balance.to::<u64>());
        assert_eq!(balances, [138, 0, 0, 0]);
    }

    #[test]
    fn a_debit_below_zero_is_refused_and_names_the_account() {
        let full =
            [(SENDER, 0), (BENEFICIARY, 15), (BASE_FEE_RECIPIENT, 20), (OPERATOR_FEE_RECIPIENT, 3)];
        for short in 1..full.len() {
            let mut balances = full;
            balances[short].1 -= 1;
            let refused = SETTLEMENT.apply(&mut state(balances), SENDER, BENEFICIARY);
            assert!(refused.unwrap_err().contains(&full[short].0.to_string()));
        }
    }

    #[test]
    fn refunds_are_found_by_index() {
        let refunds = [(1, 10), (4, 40)];
        assert_eq!([0, 1, 2, 4, 5].map(|index| refund_at(&refunds, index)), [0, 10, 0, 40, 0]);
    }
}
