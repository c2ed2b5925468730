//! The fast path: complete HTTP responses to the most frequent requests, from bytes to bytes.
//!
//! It makes no decisions of its own. The general path supplies the accepted request heads, the
//! snapshot of a commit, the JSON of its blocks, and the calls known to be short. The fast path
//! finds the request in the received bytes, opens a view, and composes the response if all supplied
//! data belong to the commit of that view. Otherwise it returns `None` and the general path
//! responds. `requests` parses the request.

mod logs;
mod requests;
mod simulations;

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use alloy_primitives::{
    Address, B256, Bytes,
    map::{DefaultHashBuilder, HashSet},
};
use memchr::memmem;

pub use logs::{Blocks, End, LogIndex, LogQuery};
pub use requests::{Asked, Method, Question, Tag, read};

use crate::{
    codec::json,
    deadline::Limits,
    error::{Error, Result},
    evm::{
        env::Env,
        execute::{self, Options},
        overlay::Overlay,
    },
    message::Message,
    params::Call,
    simulate::plain_simulation::BlockTemplate,
    state::StateReader,
    store::{Heads, SealedBlock, State, View},
    stored::block::{ReceiptLimits, StoredBlock},
};

const HEAD_END: &[u8] = b"\r\n\r\n";

/// A call that ends this long after its deadline is no longer considered short.
const LONG: Duration = Duration::from_millis(1);

/// The maximum number of known short kinds of calls. All are dropped when it is reached.
const KINDS: usize = 4096;

/// The maximum number of blocks whose receipts are answered. All are dropped when it is reached.
const BLOCKS: usize = 256;

/// Receipts that take longer to read use the general path, which limits the time of reads in one
/// round of the event loop.
const RECEIPT_LIMITS: ReceiptLimits = ReceiptLimits { skipped: 64, bytes: 1 << 14 };

/// The method of an answered request and the time it took.
pub type Timed = (Method, Duration);

/// The limits of the fast path.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    pub batch_items: usize,
    pub batch_bytes: usize,
    pub batch_time: Duration,
    pub call_gas: u64,
    pub call_time: Duration,
    /// An operation that cannot be interrupted is not started if it would take longer.
    pub step_time: Duration,
    /// The maximum number of simulated blocks, and of their calls together.
    pub simulated_calls: usize,
    /// The maximum number of bytes that simulated calls return together.
    pub simulated_output: usize,
    pub simulation_time: Duration,
}

/// The data for requests with an accepted head.
#[derive(Debug)]
pub struct Head {
    /// The length of the request body in bytes.
    pub length: usize,
    /// The start of the response, before the date.
    pub status: Box<[u8]>,
    /// Additional header lines of the response.
    pub headers: Box<[u8]>,
    /// The form of simulations is known for the root path only.
    pub is_at_root: bool,
}

impl Head {
    /// The parts of a response, in order.
    fn parts<'p>(
        &'p self,
        date: &'p [u8],
        headers: &'p [u8],
        body: &'p [u8],
        digits: &'p mut [u8; 20],
    ) -> [&'p [u8]; 8] {
        let length = decimal(body.len(), digits);
        [&self.status, date, headers, &self.headers, b"Content-Length: ", length, HEAD_END, body]
    }
}

/// The data of one commit, supplied by the general path.
#[derive(Debug)]
pub struct Snapshot {
    heads: Arc<Heads>,
    headers: Box<[u8]>,
    latest: u64,
    /// The partial block whose state is read for the latest block, if not its own.
    latest_read_at: Option<u64>,
    pending: Option<u64>,
    until: Option<Instant>,
    /// The latest and the pending block, each with transaction hashes and with full transactions.
    blocks: [[Option<Bytes>; 2]; 2],
    /// The environments of calls at the latest and the pending block.
    envs: [Option<Arc<Env>>; 2],
    /// The first blocks of simulations on the latest and the pending block.
    templates: [Option<Arc<BlockTemplate>>; 2],
    log_index: Option<LogIndex>,
    answers_calls: bool,
}

impl Snapshot {
    /// `latest` is a block number, `pending` the number of a partial block. The snapshot is not
    /// used after `until`.
    pub fn new(
        heads: Arc<Heads>,
        headers: &[u8],
        latest: u64,
        pending: Option<u64>,
        until: Option<Instant>,
    ) -> Self {
        let (blocks, envs, templates) = Default::default();
        Self {
            heads,
            headers: headers.into(),
            latest,
            latest_read_at: None,
            pending,
            until,
            blocks,
            envs,
            templates,
            log_index: None,
            answers_calls: true,
        }
    }

    /// Reads the state of the latest block at a partial block.
    #[must_use]
    pub fn reading_latest_at(self, partial: Option<u64>) -> Self {
        Self { latest_read_at: partial, ..self }
    }

    /// If `answers_calls` is false, all calls and simulations use the general path.
    #[must_use]
    pub fn answering_calls(self, answers_calls: bool) -> Self {
        Self { answers_calls, ..self }
    }
}

pub struct FastPath {
    bounds: Bounds,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    heads: HashMap<Box<[u8]>, Head, DefaultHashBuilder>,
    snapshot: Option<Snapshot>,
    light: HashSet<Kind>,
    /// The number of simulations that use the general path because one took too long.
    skipped_simulations: usize,
    /// Sealed blocks by number, each with the row that it was sealed by.
    blocks: SealedBlocks,
    /// The body of the current response, kept to reuse its memory.
    body: Vec<u8>,
    /// The requests that it answers, kept for the same reason.
    timed: Vec<Timed>,
}

type SealedBlocks = HashMap<u64, (SealedBlock, Arc<StoredBlock>), DefaultHashBuilder>;

/// A contract, the first four bytes of the data (zero-padded), and how many of them the data have.
type Kind = (Address, [u8; 4], usize);

fn kind(to: Address, data: &[u8]) -> Kind {
    let mut selector = [0; 4];
    let length = data.len().min(selector.len());
    selector[..length].copy_from_slice(&data[..length]);
    (to, selector, length)
}

impl fmt::Debug for FastPath {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("FastPath").field("bounds", &self.bounds).finish_non_exhaustive()
    }
}

impl FastPath {
    pub fn new(bounds: Bounds) -> Self {
        Self { bounds, known: Mutex::default() }
    }

    pub fn cache_head(&self, head: &[u8], accepted: Head) {
        self.known().heads.insert(head.into(), accepted);
    }

    pub fn clear_heads(&self) {
        self.known().heads.clear();
    }

    pub fn set_snapshot(&self, snapshot: Snapshot) {
        self.known().snapshot = Some(snapshot);
    }

    /// Caches the JSON of a block. Ignored if the current snapshot is a different one.
    pub fn cache_block(
        &self,
        heads: &Arc<Heads>,
        pending: Option<u64>,
        tag: Tag,
        full: bool,
        text: Bytes,
    ) {
        if let Some(snapshot) = self.known().same(heads, pending) {
            snapshot.blocks[tag as usize][usize::from(full)] = Some(text);
        }
    }

    /// Stores the extent of the index of logs. Ignored if the current snapshot is a different one.
    pub fn allow_logs(&self, heads: &Arc<Heads>, pending: Option<u64>, index: LogIndex) {
        if let Some(snapshot) = self.known().same(heads, pending) {
            snapshot.log_index = Some(index);
        }
    }

    /// Stores the environment of calls at a tag, and that a call of this kind was short.
    pub fn allow_call(
        &self,
        heads: &Arc<Heads>,
        pending: Option<u64>,
        tag: Tag,
        env: &Arc<Env>,
        to: Address,
        data: &[u8],
    ) {
        let mut known = self.known();
        if let Some(snapshot) = known.same(heads, pending) {
            snapshot.envs[tag as usize] = Some(env.clone());
        }
        if known.light.len() >= KINDS {
            known.light.clear();
        }
        known.light.insert(kind(to, data));
    }

    /// Stores the first block of simulations on the block of a tag. Ignored if the current snapshot
    /// is a different one.
    pub fn allow_simulations(
        &self,
        heads: &Arc<Heads>,
        pending: Option<u64>,
        tag: Tag,
        template: &Arc<BlockTemplate>,
    ) {
        if let Some(snapshot) = self.known().same(heads, pending) {
            snapshot.templates[tag as usize] = Some(template.clone());
        }
    }

    /// Answers requests for receipts of this block, as long as it is sealed as in this view.
    /// Ignored if it is not sealed.
    pub fn cache_receipts(&self, view: &View, block: &Arc<StoredBlock>) {
        let Ok(Some(sealed)) = view.sealed(block.number) else { return };
        if sealed.hash != block.hash {
            return;
        }
        let mut known = self.known();
        if known.blocks.len() >= BLOCKS {
            known.blocks.clear();
        }
        known.blocks.insert(block.number, (sealed, block.clone()));
    }

    /// Answers one complete request. Passes the consecutive parts of the response, and the answered
    /// requests, to `write`.
    ///
    /// `open` returns a view of the last commit, `limits` the limits of a call that starts now.
    pub fn answer<T>(
        &self,
        data: &[u8],
        date: &[u8],
        open: impl FnOnce() -> Option<View>,
        limits: impl Fn(Duration, Duration) -> Limits,
        write: impl FnOnce(&[&[u8]], &[Timed]) -> T,
    ) -> Option<T> {
        let end = memmem::find(data, HEAD_END)?;
        let mut known = self.known();
        let Known { heads, snapshot, light, skipped_simulations, blocks, body, timed } =
            &mut *known;
        let accepted = heads.get(&data[..end])?;
        let asked = &data[end + HEAD_END.len()..];
        let snapshot = snapshot.as_ref().filter(|_| asked.len() == accepted.length)?;
        let (asked, batch) = read(asked, self.bounds.batch_items)?;
        let begun = Instant::now();
        if snapshot.until.is_some_and(|until| begun >= until) {
            return None;
        }
        let view = open()?;
        if !Arc::ptr_eq(view.heads(), &snapshot.heads) {
            return None;
        }
        body.clear();
        timed.clear();
        let states = [None, None];
        let mut reader = Reader {
            view: &view,
            snapshot,
            light,
            skipped_simulations,
            blocks,
            bounds: &self.bounds,
            is_at_root: accepted.is_at_root,
            limits,
            states,
        };
        if batch {
            reader.answer_all(&asked, body, timed)?
        } else {
            reader.answer(&asked[0], body)?;
            timed.push((asked[0].question.method(), begun.elapsed()));
        }
        let mut digits = [0; 20];
        Some(write(&accepted.parts(date, &snapshot.headers, body, &mut digits), timed))
    }

    /// A panic in a callback while this lock is held leaves the data consistent, so poisoning is
    /// ignored.
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    /// The snapshot, if it matches.
    fn same(&mut self, heads: &Arc<Heads>, pending: Option<u64>) -> Option<&mut Snapshot> {
        let same = |is: &&mut Snapshot| Arc::ptr_eq(&is.heads, heads) && is.pending == pending;
        self.snapshot.as_mut().filter(same)
    }
}

/// Answers the requests of one body, all from one view.
struct Reader<'v, L> {
    view: &'v View,
    snapshot: &'v Snapshot,
    light: &'v mut HashSet<Kind>,
    skipped_simulations: &'v mut usize,
    blocks: &'v SealedBlocks,
    bounds: &'v Bounds,
    is_at_root: bool,
    limits: L,
    /// The states of the latest and the pending block, opened on first use.
    states: [Option<State>; 2],
}

impl<L: Fn(Duration, Duration) -> Limits> Reader<'_, L> {
    fn answer_all(
        &mut self,
        asked: &[Asked<'_>],
        out: &mut Vec<u8>,
        timed: &mut Vec<Timed>,
    ) -> Option<()> {
        let mut now = Instant::now();
        let until = now + self.bounds.batch_time;
        for (place, asked) in asked.iter().enumerate() {
            out.push(if place == 0 { b'[' } else { b',' });
            // These are long, and a batch is not interrupted until it is complete.
            let is_long =
                matches!(asked.question, Question::Block { .. } | Question::Simulation { .. });
            if is_long || now >= until {
                return None;
            }
            self.answer(asked, out)?;
            let ended = Instant::now();
            timed.push((asked.question.method(), ended - now));
            now = ended;
            if out.len() >= self.bounds.batch_bytes {
                return None;
            }
        }
        out.push(b']');
        Some(())
    }

    fn answer(&mut self, asked: &Asked<'_>, out: &mut Vec<u8>) -> Option<()> {
        out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
        out.extend_from_slice(asked.id);
        out.extend_from_slice(b",\"result\":");
        match &asked.question {
            Question::Balance { address, at } => {
                let account = self.state(*at).ok()?.account(address).ok()?;
                json::wide_quantity(out, account.map(|it| it.balance).unwrap_or_default());
            }
            Question::Block { at, full } => {
                let text = self.snapshot.blocks[*at as usize][usize::from(*full)].as_ref()?;
                out.extend_from_slice(text);
            }
            Question::Call { call, at } => self.call(call, *at, out)?,
            Question::Simulation { payload, at } => self.simulate(payload, *at, out)?,
            Question::Receipt { transaction } => self.receipt(transaction, out)?,
            Question::Logs { query } => self.logs(query, out)?,
        }
        out.push(b'}');
        Some(())
    }

    /// Executes a call of a short kind and writes its output. `None` if it does not succeed.
    fn call(&mut self, call: &Call, at: Tag, out: &mut Vec<u8>) -> Option<()> {
        let env = self.snapshot.envs[at as usize].as_ref()?;
        let (from, to, data) = (call.from, call.to, call.data.clone());
        let kind = kind(to?, &data);
        if !(self.snapshot.answers_calls && self.light.contains(&kind)) {
            return None;
        }
        let &Bounds { call_gas: gas, call_time, step_time, .. } = self.bounds;
        let message = Message { from, to, data, gas, ..Message::default() };
        let limits = (self.limits)(call_time, step_time);
        let long_after = limits.deadline.map(|deadline| deadline + LONG);
        let mut overlay = Overlay::new(Box::new(self.state(at).ok()?.clone()));
        let options = Options { limits, ..Options::default() };
        match execute::call(&mut overlay, env, &message, options) {
            Ok(outcome) if outcome.is_success() => {
                json::data(out, &outcome.output);
                if long_after.is_some_and(|after| Instant::now() >= after) {
                    self.light.remove(&kind);
                }
            }
            Err(Error::DeadlineExceeded) => {
                self.light.remove(&kind);
                return None;
            }
            _ => return None,
        }
        Some(())
    }

    /// Writes the receipt of a transaction in a cached block.
    fn receipt(&mut self, transaction: &B256, out: &mut Vec<u8>) -> Option<()> {
        let entry = self.state(Tag::Latest).ok()?.index(&index_key(b't', transaction)).ok()??;
        let (number, index) = entry.split_first_chunk()?;
        let (number, index) =
            (u64::from_be_bytes(*number), u32::from_be_bytes(index.try_into().ok()?));
        let (sealed, block) = self.blocks.get(&number)?;
        if self.view.sealed(number).ok()?? != *sealed {
            return None;
        }
        block.receipt(self.view, index.into(), RECEIPT_LIMITS, out).ok()?.then_some(())
    }

    /// Writes the logs that match a query over sealed blocks.
    fn logs(&mut self, query: &LogQuery, out: &mut Vec<u8>) -> Option<()> {
        let index = self.snapshot.log_index.as_ref()?;
        let blocks = match query.blocks {
            Blocks::Hash(hash) => {
                let number = self.number_of(&hash).filter(|number| *number >= index.first)?;
                (number, number)
            }
            Blocks::Range(..) => query.range(index, self.snapshot.latest)?,
        };
        query.clone().write(self.view, index, blocks, out).ok()?.then_some(())
    }

    /// The number of the sealed block of this hash.
    fn number_of(&mut self, hash: &B256) -> Option<u64> {
        // Blocks that were imported have an entry in the index, those of flashblocks a row.
        let entry = match self.view.row(&index_key(b'h', hash)).ok()? {
            Some(row) => row,
            None => self.state(Tag::Latest).ok()?.index(&index_key(b'b', hash)).ok()??,
        };
        let number = u64::from_be_bytes(*entry.first_chunk()?);
        (self.view.sealed(number).ok()??.hash == *hash).then_some(number)
    }

    fn state(&mut self, at: Tag) -> Result<&State> {
        match &mut self.states[at as usize] {
            Some(state) => Ok(state),
            none => {
                let Snapshot { latest, latest_read_at, pending, .. } = self.snapshot;
                let partial = match at {
                    Tag::Pending => pending.or(*latest_read_at),
                    Tag::Latest => *latest_read_at,
                };
                Ok(none.insert(match partial {
                    Some(number) => self.view.state_of_partial(number)?,
                    None => self.view.state(*latest)?,
                }))
            }
        }
    }
}

/// The key of a block or transaction in the index of hashes.
fn index_key(kind: u8, hash: &B256) -> [u8; 33] {
    let mut key = [kind; 33];
    key[1..].copy_from_slice(hash.as_slice());
    key
}

/// Formats a number in decimal without allocating.
fn decimal(mut number: usize, digits: &mut [u8; 20]) -> &[u8] {
    let mut first = digits.len();
    loop {
        first -= 1;
        digits[first] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return &digits[first..];
        }
    }
}

#[cfg(test)]
mod tests;
