//! eth_createAccessList: the accesses of a call, found by repeating it until the list is stable.
//!
//! An access list changes which addresses are warm and how much gas is left, which may change the
//! execution path. Each run therefore uses the list of the previous run, as in geth.

use std::collections::BTreeSet;

use alloy_eips::eip2930::{AccessList, AccessListItem};
use alloy_primitives::{Address, U256};

use super::{
    accesses::{Accesses, List},
    frames::CODE_STORAGE,
    recorder::{Kind, Recorder},
};
use crate::{
    error::{Error, Result},
    evm::{
        env::Env,
        execute::{self, Options},
        machine::{self, Ethereum, EthereumInput},
        outcome::{Outcome, Status},
        overlay::Overlay,
    },
    message::Message,
};

/// Maximum number of runs for a call whose list does not stabilise.
const MOST_RUNS: usize = 64;

/// Returns the access list of a call and its outcome with that list. `excluded` lists addresses
/// that are warm anyway: sender and receiver. Precompiles and authorities are added here.
///
/// # Errors
///
/// As `execute::call`; `TraceTooLong` if the list exceeds `limit` bytes.
pub fn create(
    overlay: &mut Overlay,
    env: &Env,
    message: &Message,
    options: &Options,
    excluded: impl IntoIterator<Item = Address>,
    limit: usize,
) -> Result<(AccessList, Outcome)> {
    let mut excluded: BTreeSet<Address> = excluded.into_iter().collect();
    excluded.extend(env.rules.precompiles().addresses());
    excluded.extend(authorities(env, message));
    let mut list = given(&message.access_list, &excluded);
    for _ in 0..MOST_RUNS {
        let message = Message { access_list: shown(&list), ..message.clone() };
        let input = EthereumInput::Transaction(env.transaction(&message)?);
        let setup = execute::setup(env, &message, options.clone());
        let spec = env.rules.spec_id();
        let accesses = Accesses::new(list.clone(), excluded.clone(), spec);
        let recorder = Recorder::new(Kind::Accesses(accesses), limit);
        let (ran, recorder) = machine::trace::<Ethereum<Recorder>>(overlay, setup, input, recorder);
        let ran = ran.map_err(execute::refusal);
        if recorder.is_full && !matches!(ran, Err(Error::StateMissing(_))) {
            return Err(Error::TraceTooLong(limit));
        }
        let mut outcome = Outcome::from(ran?);
        let Kind::Accesses(found) = recorder.kind else { break };
        if found.list == list {
            if let Status::Halt(why) = &mut outcome.status {
                match found.fault {
                    Some(fault) => *why = fault,
                    None if message.to.is_none() && why == "out of gas" => {
                        *why = CODE_STORAGE.into()
                    }
                    None => {}
                }
            }
            return Ok((message.access_list, outcome));
        }
        list = found.list;
    }
    Err(Error::Execution(format!("an access list that changes after {MOST_RUNS} runs")))
}

/// The authorities of possibly valid authorizations; they are loaded anyway.
fn authorities(env: &Env, message: &Message) -> impl Iterator<Item = Address> {
    let here = [U256::ZERO, U256::from(env.chain_id)];
    let signed = message.authorization_list.iter();
    let valid = signed.filter(move |it| here.contains(&it.chain_id) && it.nonce < u64::MAX);
    valid.filter_map(|it| it.recover_authority().ok())
}

fn given(list: &AccessList, excluded: &BTreeSet<Address>) -> List {
    let mut found = List::new();
    for item in list.iter() {
        if !excluded.contains(&item.address) || !item.storage_keys.is_empty() {
            let slots = item.storage_keys.iter().map(|key| U256::from_be_bytes(key.0));
            found.entry(item.address).or_default().extend(slots);
        }
    }
    found
}

fn shown(list: &List) -> AccessList {
    let item = |(address, slots): (&Address, &BTreeSet<U256>)| AccessListItem {
        address: *address,
        storage_keys: slots.iter().map(|slot| (*slot).into()).collect(),
    };
    AccessList(list.iter().map(item).collect())
}
