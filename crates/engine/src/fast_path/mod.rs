//! The fast path: whole HTTP answers to the requests that are asked most, from bytes to bytes.
//!
//! Nothing is decided here. Which heads are accepted, what the snapshot of a commit is, how a
//! block reads and which calls are short is handed in by the long way; this finds the request in
//! what arrived, opens a view, and puts the answer together if all that was handed in is of that
//! view's commit. In every other case it has no answer, and the long way has. `requests` parses
//! the request.

mod requests;

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use alloy_primitives::{
    Address, Bytes,
    map::{DefaultHashBuilder, HashSet},
};
use memchr::memmem;

pub use requests::{Asked, Method, Question, Tag, read};

use crate::{
    codec::json,
    error::{Error, Result},
    evm::{
        deadline::Limits,
        env::Env,
        execute::{self, Options},
        message::Message,
        overlay::Overlay,
    },
    params::Call,
    state::StateReader,
    store::{Heads, State, View},
};

const HEAD_END: &[u8] = b"\r\n\r\n";

/// A run that ended so long after its time was not short, whatever it was made of.
const LONG: Duration = Duration::from_millis(1);

/// Kinds of calls that are known to be short at most; then all are forgotten.
const KINDS: usize = 4096;

/// A request that was answered, and how long that took.
pub type Timed = (Method, Duration);

/// What is answered here at most, and how far a call may go.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    pub batch_items: usize,
    pub batch_bytes: usize,
    pub batch_time: Duration,
    pub call_gas: u64,
    pub call_time: Duration,
    /// What cannot be stopped and takes longer is not begun.
    pub step_time: Duration,
}

/// What follows a head that was accepted.
#[derive(Debug)]
pub struct Head {
    /// Bytes of the body.
    pub length: usize,
    /// How an answer begins, before the date.
    pub status: Box<[u8]>,
    /// Lines among those of the answer.
    pub headers: Box<[u8]>,
}

impl Head {
    /// The parts of an answer, in their order.
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

/// What the long way made of a commit.
#[derive(Debug)]
pub struct Snapshot {
    heads: Arc<Heads>,
    headers: Box<[u8]>,
    latest: u64,
    /// The partial block at which the state of the latest is read, if it is not its own.
    latest_read_at: Option<u64>,
    pending: Option<u64>,
    until: Option<Instant>,
    /// Of the latest block and of the pending one, with hashes and with full transactions.
    blocks: [[Option<Bytes>; 2]; 2],
    /// What calls see in them.
    envs: [Option<Arc<Env>>; 2],
    answers_calls: bool,
}

impl Snapshot {
    /// `latest` is a block's number, `pending` that of a partial block; `until` there are
    /// answers.
    pub fn new(
        heads: Arc<Heads>,
        headers: &[u8],
        latest: u64,
        pending: Option<u64>,
        until: Option<Instant>,
    ) -> Self {
        let (blocks, envs) = Default::default();
        let (headers, latest_read_at) = (headers.into(), None);
        let answers_calls = true;
        Self { heads, headers, latest, latest_read_at, pending, until, blocks, envs, answers_calls }
    }

    /// The same, where the state of the latest block is read at a partial block.
    #[must_use]
    pub fn reading_latest_at(self, partial: Option<u64>) -> Self {
        Self { latest_read_at: partial, ..self }
    }

    /// The same, where all calls take the long way unless this is true.
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
    /// The body of the answer that is being written; kept for its memory.
    body: Vec<u8>,
    /// The requests that it answers, likewise.
    timed: Vec<Timed>,
}

/// A contract, and as much of the data as tells functions apart, with the length of that.
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

    /// How a block reads; nothing happens if the last snapshot is another one.
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

    /// What calls see at a tag, and that one of this kind was short.
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

    /// The answer to one whole request, handed to `write` in parts that follow one another, with
    /// the requests of the body.
    ///
    /// `open` gives a view of the last commit, `limits` those of a call that begins now.
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
        let Known { heads, snapshot, light, body, timed } = &mut *known;
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
        let mut reader =
            Reader { view: &view, snapshot, light, bounds: &self.bounds, limits, states };
        if batch {
            reader.answer_all(&asked, body, timed)?
        } else {
            reader.answer(&asked[0], body)?;
            timed.push((asked[0].question.method(), begun.elapsed()));
        }
        let mut digits = [0; 20];
        Some(write(&accepted.parts(date, &snapshot.headers, body, &mut digits), timed))
    }

    /// No code of others runs under this lock but `write`, which may panic: all is whole then.
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    /// The snapshot, if it is this one.
    fn same(&mut self, heads: &Arc<Heads>, pending: Option<u64>) -> Option<&mut Snapshot> {
        let same = |is: &&mut Snapshot| Arc::ptr_eq(&is.heads, heads) && is.pending == pending;
        self.snapshot.as_mut().filter(same)
    }
}

/// Reads what one body asks for, all of it in one view.
struct Reader<'v, L> {
    view: &'v View,
    snapshot: &'v Snapshot,
    light: &'v mut HashSet<Kind>,
    bounds: &'v Bounds,
    limits: L,
    /// After the latest block and after the pending one, once somebody asked.
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
            // Blocks are long, and nothing else is answered before all is written.
            if matches!(asked.question, Question::Block { .. }) || now >= until {
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
        }
        out.push(b'}');
        Some(())
    }

    /// A call of a kind that is short and that ends well, with what it returns.
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

/// A number in decimal digits, without asking for memory.
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
