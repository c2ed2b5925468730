//! Traces transactions of a block or a call: replays earlier transactions, records, and writes.
//!
//! Transactions before the traced one are executed without a recorder. A request has one text with
//! one limit, and one set of execution limits.

use alloy_eips::eip7702::Authorization;
use alloy_primitives::{Address, B256};
use revm::{primitives::hardfork::SpecId, state::EvmState};

use super::{
    authorizations,
    calls::{self, Top},
    flat_calls::{self, Place, Style},
    frames::Frames,
    otterscan,
    prestate::Prestate,
    recorder::{self, Kind, Recorder},
    selectors::Selectors,
    state_diff,
    struct_logs::StructLogs,
    text::Text,
    touched::Touched,
    vm_trace::VmTrace,
};
pub use super::{flat_calls::Selection, prestate::PrestateOptions, struct_logs::StructLogOptions};
use crate::{
    codec::{
        json::{data, member},
        transaction::Transaction,
    },
    deadline::Limits,
    error::{Error, Result},
    evm::{
        allowance::{Allowance, TIME},
        env::Env,
        execute::{self, Options},
        machine::{
            Ethereum, EthereumInput, Failure, Inspected, Optimism, OptimismInput, Ran, Setup,
        },
        outcome::{Outcome, Status},
        overlay::{Overlay, Override},
        settlement::Refunds,
        transact::{self, Observer, Progress},
    },
    message::Message,
};

/// The start of Parity's object, before the instructions, which are written as they execute.
const VM_TRACE: &[u8] = b"{\"vmTrace\":";

/// The data to record and its format.
#[derive(Debug, Clone, Copy)]
pub enum Tracer {
    StructLogs(StructLogOptions),
    Calls {
        only_top: bool,
        with_logs: bool,
    },
    FlatCalls {
        parity_errors: bool,
        precompiles: bool,
    },
    Prestate(PrestateOptions),
    Selectors,
    Nothing,
    /// Parity's list without brackets, so that lists of several runs can be joined.
    Parity,
    /// Otterscan's list of calls.
    Entries,
    /// Otterscan's list of transfers, creations and self-destructs.
    Operations,
    /// The revert data; empty if the run did not revert.
    RevertData,
    /// The addresses that a transaction touches, as entries of a row (`stored::touched`).
    Touched,
    /// Parity's object of a replayed transaction.
    Replay {
        trace: bool,
        state_diff: bool,
        vm_trace: bool,
    },
}

/// Selects the transactions to trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceScope {
    /// One transaction; later ones are not executed.
    Only(usize),
    /// All, as a list of objects with their hashes.
    Each,
    /// All, concatenated.
    All,
}

/// A manual change of an account within the block, before the transaction with this index.
#[derive(Debug)]
pub struct Cheat {
    pub before: usize,
    pub address: Address,
    pub new: Override,
}

#[derive(Debug)]
pub struct Request {
    pub tracer: Tracer,
    pub scope: TraceScope,
    pub block_hash: Option<B256>,
    pub selection: Selection,
    /// Maximum bytes written and held.
    pub limit: usize,
    pub limits: Limits,
    /// Sorted by index.
    pub cheats: Vec<Cheat>,
    /// Refunds of the block by its sequencer.
    pub refunds: Refunds,
}

/// The text, and the rest of the selection.
pub type Traced = (Text, Selection);

/// # Errors
///
/// `TraceTooLong` above the limit, `PoolFull` if all traces together hold too much,
/// `DeadlineExceeded` if stopped, `InvalidTransaction` for a transaction that is not valid there,
/// or the error of a state read.
pub fn transactions<'a>(
    overlay: &mut Overlay,
    env: &Env,
    transactions: impl IntoIterator<Item = &'a Transaction>,
    request: Request,
) -> Result<Traced> {
    let mut session = Session::new(env, request);
    let mut progress = Progress::default().refunding(session.request.refunds.clone(), 0);
    let mut allowance = Allowance::from(session.request.limits.clone());
    if session.request.scope == TraceScope::Each {
        session.text.push(b"[");
    }
    let mut cheats = std::mem::take(&mut session.request.cheats).into_iter().peekable();
    for (index, transaction) in transactions.into_iter().enumerate() {
        while let Some(cheat) = cheats.next_if(|cheat| cheat.before <= index) {
            overlay.apply(cheat.address, &cheat.new)?;
            progress.state_changed();
        }
        let skipped = matches!(session.request.scope, TraceScope::Only(only) if index < only);
        let mut watching = match skipped {
            true => None,
            false => {
                session.begin(index, transaction);
                Some(session.watching_transaction(overlay, transaction)?)
            }
        };
        let executed = transact::transact_watched(
            overlay,
            env,
            transaction,
            &mut progress,
            &mut allowance,
            watching.as_mut().map(|it| it as _),
        );
        if let Err(missing @ Error::StateMissing(_)) = executed {
            // The recording was made with defaults and is not valid.
            return Err(missing);
        }
        if let Some(watching) = &watching {
            watching.check(session.request.limit)?;
        }
        let executed = executed.map_err(stopped)?;
        if let Some(watching) = watching {
            let gas_limit = transaction.fields().gas_limit();
            let place = Some((transaction.hash, index as u64));
            session.write(watching, overlay, &executed.outcome, gas_limit, place)?;
            if session.is_wrapping() {
                session.text.push(b"}");
            }
        }
        session.logs += executed.outcome.logs.len() as u64;
        let done = session.request.selection.is_done();
        if matches!(session.request.scope, TraceScope::Only(only) if index >= only) || done {
            break;
        }
    }
    if session.request.scope == TraceScope::Each {
        session.text.push(b"]");
    }
    Ok((session.text, session.request.selection))
}

/// Traces a call and commits its effects to the overlay.
///
/// # Errors
///
/// As `transactions`, and `InvalidMessage` if the call cannot start.
pub fn call(
    overlay: &mut Overlay,
    env: &Env,
    message: &Message,
    options: Options,
    request: Request,
) -> Result<Traced> {
    let mut session = Session::new(env, request);
    let input = EthereumInput::Transaction(env.transaction(message)?);
    let setup = || execute::setup(env, message, options.clone());
    let mut watching = session.watching();
    if let Kind::Steps(steps) = &mut watching.recorder.kind {
        let all = message.authorization_list.iter();
        let signed = all.map(|it| (it.inner().clone(), it.recover_authority().ok()));
        steps.add_refund(authorizations::earned(overlay, env, message.from, signed)?);
    }
    if let Kind::Prestate(prestate) = &mut watching.recorder.kind {
        let sender = overlay.account(&message.from)?;
        let nonce = sender.map_or(0, |account| account.nonce);
        prestate.note(message.from);
        note_target(prestate, overlay, env, message.to, || message.from.create(nonce))?;
        prestate.note(env.block.beneficiary);
        let signers =
            message.authorization_list.iter().filter_map(|it| it.recover_authority().ok());
        signers.for_each(|signer| prestate.note(signer));
    }
    let ran = watching.ethereum(overlay, &setup, input);
    if let Err(Failure::MissingState(missing, _)) = ran {
        return Err(Error::StateMissing(missing));
    }
    watching.check(session.request.limit)?;
    let mut ran = ran.map_err(execute::refusal)?;
    watching.ran(overlay, &ran.state)?;
    watching.check(session.request.limit)?;
    overlay.commit(std::mem::take(&mut ran.state));
    let outcome = Outcome::from(ran);
    session.write(watching, overlay, &outcome, message.gas, None)?;
    Ok((session.text, session.request.selection))
}

/// The recorder of one run, and the diff that is read before its effects are committed.
struct Watching {
    recorder: Recorder,
    state_diff: Option<Text>,
}

impl Watching {
    fn record<'s, M>(
        &mut self,
        overlay: &mut Overlay,
        setup: &dyn Fn() -> Setup<'s>,
        input: M::Input,
    ) -> Result<Ran, Failure>
    where
        M: Inspected<Inspector = Recorder, Input: Clone>,
    {
        let recorder = std::mem::take(&mut self.recorder);
        let (ran, recorder) = recorder::record::<M>(overlay, setup, input, recorder);
        self.recorder = recorder;
        ran
    }

    fn check(&self, limit: usize) -> Result<()> {
        if self.recorder.is_crowded {
            return Err(Error::PoolFull(0));
        }
        match self.recorder.is_full || self.state_diff.as_ref().is_some_and(Text::is_over) {
            true => Err(Error::TraceTooLong(limit)),
            false => Ok(()),
        }
    }
}

impl Observer for Watching {
    fn ethereum<'s>(
        &mut self,
        overlay: &mut Overlay,
        setup: &dyn Fn() -> Setup<'s>,
        input: EthereumInput,
    ) -> Result<Ran, Failure> {
        self.record::<Ethereum<Recorder>>(overlay, setup, input)
    }

    fn optimism<'s>(
        &mut self,
        overlay: &mut Overlay,
        setup: &dyn Fn() -> Setup<'s>,
        input: OptimismInput,
    ) -> Result<Ran, Failure> {
        self.record::<Optimism<Recorder>>(overlay, setup, input)
    }

    fn ran(&mut self, overlay: &Overlay, state: &EvmState) -> Result<()> {
        if let Some(text) = &mut self.state_diff {
            state_diff::write(text, state, overlay)?;
        }
        if let Kind::Prestate(prestate) = &mut self.recorder.kind {
            let limit = self.recorder.limit;
            self.recorder.is_full |= !prestate.read_before(overlay, limit)?;
        }
        Ok(())
    }
}

struct Session<'a> {
    env: &'a Env,
    request: Request,
    text: Text,
    /// The number of logs of earlier transactions.
    logs: u64,
    first: bool,
}

impl<'a> Session<'a> {
    fn new(env: &'a Env, request: Request) -> Self {
        Self { env, text: Text::new(request.limit), request, logs: 0, first: true }
    }

    /// True if each transaction is an object with its hash and trace. Parity's objects contain the
    /// hash themselves.
    fn is_wrapping(&self) -> bool {
        let replays = matches!(self.request.tracer, Tracer::Replay { .. });
        self.request.scope == TraceScope::Each && !replays
    }

    fn begin(&mut self, index: usize, transaction: &Transaction) {
        if self.request.scope == TraceScope::Each && index > 0 {
            self.text.push(b",");
        }
        if self.is_wrapping() {
            let out = self.text.out();
            out.push(b'{');
            member(out, b"\"txHash\":", |out| data(out, transaction.hash));
            out.extend_from_slice(b",\"result\":");
        }
    }

    fn watching(&mut self) -> Watching {
        let spec: SpecId = self.env.rules.spec_id();
        let room = self.text.room();
        let mut limit = room;
        let kind = match self.request.tracer {
            Tracer::StructLogs(options) => {
                limit = self.request.limit;
                let text = std::mem::take(&mut self.text);
                Kind::Steps(StructLogs::new(options, text, spec))
            }
            Tracer::Calls { with_logs, .. } => {
                Kind::Frames(Frames::new(with_logs, self.logs, self.env.rules))
            }
            Tracer::FlatCalls { .. }
            | Tracer::Parity
            | Tracer::Entries
            | Tracer::Operations
            | Tracer::Replay { trace: true, .. } => {
                Kind::Frames(Frames::new(false, self.logs, self.env.rules))
            }
            Tracer::Prestate(options) => Kind::Prestate(Prestate::new(options, spec)),
            Tracer::Selectors => Kind::Selectors(Selectors::new(self.env.rules.precompiles())),
            Tracer::Touched => Kind::Touched(Touched::default()),
            Tracer::Nothing | Tracer::RevertData | Tracer::Replay { trace: false, .. } => {
                Kind::Nothing
            }
        };
        let state_diff = matches!(self.request.tracer, Tracer::Replay { state_diff: true, .. });
        let recorder = match self.request.tracer {
            Tracer::Replay { vm_trace: true, .. } => {
                let kind = match kind {
                    Kind::Frames(frames) => Kind::Frames(frames.explaining()),
                    kind => kind,
                };
                let mut text = std::mem::take(&mut self.text);
                text.push(VM_TRACE);
                Recorder::with_vm_trace(kind, VmTrace::new(text, spec), self.request.limit)
            }
            _ => Recorder::new(kind, limit),
        };
        Watching { recorder, state_diff: state_diff.then(|| Text::new(room)) }
    }

    fn watching_transaction(
        &mut self,
        overlay: &Overlay,
        transaction: &Transaction,
    ) -> Result<Watching> {
        let mut watching = self.watching();
        let sender = transaction.sender;
        if let (Kind::Frames(frames), Some(_)) =
            (&mut watching.recorder.kind, transaction.post_exec())
        {
            frames.note_nothing(transaction.fields().input());
        }
        if let Kind::Steps(steps) = &mut watching.recorder.kind {
            let all = transaction.recovered_authorizations().into_iter();
            let signed = all.map(|it| (Authorization::clone(&it), it.authority()));
            steps.add_refund(authorizations::earned(overlay, self.env, sender, signed)?);
        }
        if let Kind::Prestate(prestate) = &mut watching.recorder.kind {
            let nonce = overlay.account(&sender)?.map_or(0, |account| account.nonce);
            let to = transaction.fields().to();
            prestate.note(sender);
            note_target(prestate, overlay, self.env, to, || sender.create(nonce))?;
            prestate.note(self.env.block.beneficiary);
            for authorization in transaction.recovered_authorizations() {
                authorization.authority().into_iter().for_each(|signer| prestate.note(signer));
            }
        }
        if let Kind::Touched(touched) = &mut watching.recorder.kind {
            // A failed deposit makes no call.
            let nonce = overlay.account(&sender)?.map_or(0, |account| account.nonce);
            touched.note(sender);
            touched.note(transaction.fields().to().unwrap_or_else(|| sender.create(nonce)));
        }
        Ok(watching)
    }

    /// Writes the recording.
    fn write(
        &mut self,
        watching: Watching,
        overlay: &Overlay,
        outcome: &Outcome,
        gas_limit: u64,
        transaction: Option<(B256, u64)>,
    ) -> Result<()> {
        let Watching { recorder, state_diff } = watching;
        let (kind, vm_trace) = recorder.into_parts();
        let place = Place {
            block_hash: self.request.block_hash,
            block_number: if transaction.is_some() { self.env.number() } else { 0 },
            transaction,
        };
        match (kind, self.request.tracer) {
            (Kind::Steps(steps), _) => self.text = steps.finish(outcome),
            (Kind::Frames(frames), Tracer::Calls { only_top, .. }) => {
                calls::write(&mut self.text, &frames, &Top { gas_limit, outcome }, only_top);
            }
            (Kind::Frames(frames), Tracer::FlatCalls { parity_errors, precompiles }) => {
                let top = Some((gas_limit, outcome.gas_used));
                let style = Style { place: Some(place), parity_errors, precompiles, top };
                self.text.push(b"[");
                let mut all = Selection::default();
                flat_calls::write(&mut self.text, &frames, &style, &mut all, &mut true);
                self.text.push(b"]");
            }
            (Kind::Frames(frames), Tracer::Parity) => {
                let style = parity(Some(place));
                let Self { text, request, first, .. } = self;
                flat_calls::write(text, &frames, &style, &mut request.selection, first);
            }
            (Kind::Frames(frames), Tracer::Entries) => {
                otterscan::write_entries(&mut self.text, &frames);
            }
            (Kind::Frames(frames), Tracer::Operations) => {
                otterscan::write_operations(&mut self.text, &frames);
            }
            (_, Tracer::RevertData) => {
                let reverted = outcome.status == Status::Revert;
                let reason: &[u8] = if reverted { &outcome.output } else { &[] };
                data(self.text.out(), reason);
            }
            (kind, Tracer::Replay { .. }) => {
                let steps = vm_trace.map(VmTrace::finish);
                let has_steps = steps.is_some();
                self.text = steps.unwrap_or_else(|| std::mem::take(&mut self.text));
                self.text.push(if has_steps { b"," } else { b"{" });
                self.write_replay(kind, state_diff, outcome);
                if !has_steps {
                    self.text.push(b",\"vmTrace\":null");
                }
                if let (TraceScope::Each, Some((hash, _))) = (self.request.scope, transaction) {
                    member(self.text.out(), b",\"transactionHash\":", |out| data(out, hash));
                }
                self.text.push(b"}");
            }
            (Kind::Prestate(prestate), _) => {
                prestate.write(&mut self.text, overlay)?;
            }
            (Kind::Selectors(selectors), _) => selectors.write(&mut self.text),
            (Kind::Touched(touched), _) => {
                touched.write(&mut self.text, transaction.map_or(0, |(_, place)| place));
            }
            _ => self.text.push(b"{}"),
        }
        if self.text.is_over() {
            return Err(Error::TraceTooLong(self.request.limit));
        }
        if self.text.is_crowded() {
            return Err(Error::PoolFull(0));
        }
        Ok(())
    }

    /// Writes the members of Parity's object other than `vmTrace`.
    fn write_replay(&mut self, kind: Kind, state_diff: Option<Text>, outcome: &Outcome) {
        let text = &mut self.text;
        member(text.out(), b"\"output\":", |out| data(out, &outcome.output));
        text.push(b",\"stateDiff\":");
        match state_diff {
            None => text.push(b"null"),
            // Nothing ran: a post-execution transaction.
            Some(diff) if diff.is_empty() => text.push(b"{}"),
            Some(diff) => diff.into_chunks().for_each(|chunk| text.push(&chunk)),
        }
        text.push(b",\"trace\":[");
        if let Kind::Frames(frames) = kind {
            let mut all = Selection::default();
            flat_calls::write(text, &frames, &parity(None), &mut all, &mut true);
        }
        text.push(b"]");
    }
}

fn parity(place: Option<Place>) -> Style {
    Style { place, parity_errors: true, precompiles: false, top: None }
}

/// Records the account that a transaction is sent to, and the account whose code it executes.
fn note_target(
    prestate: &mut Prestate,
    overlay: &Overlay,
    env: &Env,
    to: Option<alloy_primitives::Address>,
    created: impl FnOnce() -> alloy_primitives::Address,
) -> Result<()> {
    let Some(to) = to else {
        prestate.creates(created());
        return Ok(());
    };
    prestate.note(to);
    if env.rules.spec_id().is_enabled_in(SpecId::PRAGUE)
        && let Some(target) = super::context::delegation_of(&overlay.code(&to)?)
    {
        prestate.note(target);
    }
    Ok(())
}

/// Converts the time limit of a block's transactions to the deadline error of a call.
fn stopped(error: Error) -> Error {
    match error {
        Error::OverBudget { what: TIME, .. } => Error::DeadlineExceeded,
        other => other,
    }
}
