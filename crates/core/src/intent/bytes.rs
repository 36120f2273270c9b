//! An intent as versioned bytes, as `record` has them. What cannot be decoded is corrupt and never absent: it may have
//! been sent. Columns and indexes belong to the stores.

use http::Method;

use super::{
    Attempt, AttemptEnd, Deadline, Header, Intent, Name, Outcome, ProfileRef, Promise, Request, Secret, SecretSource,
    Settler, State, Terms, Value,
};
use crate::codec::{Reader, Writer, open};
use crate::error::Error;
use crate::identity::{Key, Scope};
use crate::profile::{Carrier, Encoding, Proof, Reason};
use crate::record::LeaseId;
use crate::schedule::Backoff;

/// The newest format that this version reads and writes.
pub const FORMAT_NEWEST: u8 = 1;

/// Writes an intent.
#[must_use]
pub fn encode(intent: &Intent) -> Vec<u8> {
    let mut out = Writer::format(FORMAT_NEWEST);
    out.u64(intent.version);
    out.request(&intent.request);
    out.terms(&intent.terms);
    out.time(intent.created_at);
    out.option(intent.doubt.as_ref(), |out, since| out.time(*since));
    out.option(intent.deadline.as_ref(), |out, deadline| {
        out.time(deadline.from);
        out.time(deadline.until);
    });
    out.u64(u64::from(intent.attempted));
    out.u64(u64::from(intent.reached));
    out.u64(intent.attempts.len() as u64);
    for attempt in &intent.attempts {
        out.attempt(attempt);
    }
    out.option(intent.resource.as_ref(), |out, resource| out.bytes(resource.as_bytes()));
    out.u8(u8::from(intent.alarm));
    out.state(&intent.state);
    out.seal()
}

/// Reads what [`encode`] wrote.
///
/// # Errors
/// [`Error::IntentNewer`] where a newer version wrote it, [`Error::IntentCorrupt`] where it cannot be read for any other
/// reason.
pub fn decode(bytes: &[u8]) -> Result<Intent, Error> {
    let read = || {
        let (_, mut reader) = open(bytes, FORMAT_NEWEST)?;
        let intent = reader.intent()?;
        reader.done(intent)
    };
    read().map_err(|error| match error {
        Error::Newer { found, known } => Error::IntentNewer { found, known },
        Error::Corrupt(what) => Error::IntentCorrupt(what),
        _ => Error::IntentCorrupt("value"),
    })
}

impl Writer {
    fn request(&mut self, request: &Request) {
        self.bytes(request.name.as_str().as_bytes());
        self.bytes(request.key.as_str().as_bytes());
        match &request.carrier {
            Carrier::Header { name, encoding, first_sent } => {
                self.u8(1);
                self.bytes(name.as_bytes());
                self.u8(match encoding {
                    Encoding::Raw => 1,
                    Encoding::Quoted => 2,
                });
                self.option(first_sent.as_ref(), |out, name| out.bytes(name.as_bytes()));
            }
            Carrier::Member(name) => {
                self.u8(2);
                self.bytes(name.as_bytes());
            }
            Carrier::Parameter(name) => {
                self.u8(3);
                self.bytes(name.as_bytes());
            }
        }
        self.bytes(request.method.as_str().as_bytes());
        self.bytes(request.origin.as_bytes());
        self.bytes(request.target.as_bytes());
        self.u64(request.headers.len() as u64);
        for header in &request.headers {
            self.bytes(header.name.as_bytes());
            self.value(&header.value);
        }
        self.bytes(&request.body);
        self.option(request.scope.as_ref(), |out, scope| out.bytes(scope.as_bytes()));
        self.bytes(request.profile.id.as_bytes());
        self.u64(u64::from(request.profile.version));
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::Plain(bytes) => {
                self.u8(1);
                self.bytes(bytes);
            }
            Value::Secret(Secret { prefix, source }) => {
                let (kind, text) = match source {
                    SecretSource::Env(name) => (2, name),
                    SecretSource::File(path) => (3, path),
                };
                self.u8(kind);
                self.bytes(prefix.as_bytes());
                self.bytes(text.as_bytes());
            }
        }
    }

    fn terms(&mut self, terms: &Terms) {
        match terms.window {
            Promise::Documented(span) => {
                self.u8(1);
                self.span(span);
            }
            Promise::ForEver => self.u8(2),
            Promise::Given(span) => {
                self.u8(3);
                self.span(span);
            }
            Promise::Assumed => self.u8(4),
        }
        self.span(terms.attempt_limit);
        self.span(terms.backoff.base);
        self.span(terms.backoff.cap);
        self.span(terms.backoff.least);
    }

    fn attempt(&mut self, attempt: &Attempt) {
        self.u64(u64::from(attempt.number));
        self.bytes(attempt.lease.as_bytes());
        self.time(attempt.started_at);
        self.time(attempt.until);
        match &attempt.end {
            None => self.u8(0),
            Some(AttemptEnd::Answered { at, status, verdict }) => {
                self.u8(1);
                self.time(*at);
                self.u64(u64::from(*status));
                self.bytes(verdict.as_bytes());
            }
            Some(AttemptEnd::NotSent { at }) => {
                self.u8(2);
                self.time(*at);
            }
            Some(AttemptEnd::Uncertain { at }) => {
                self.u8(3);
                self.time(*at);
            }
            Some(AttemptEnd::Lapsed) => self.u8(4),
        }
    }

    fn state(&mut self, state: &State) {
        match state {
            State::Ready => self.u8(1),
            State::Sending { attempt, lease } => {
                self.u8(2);
                self.u64(u64::from(*attempt));
                self.lease(lease);
            }
            State::Waiting { until } => {
                self.u8(3);
                self.time(*until);
            }
            State::Uncertain { until } => {
                self.u8(4);
                self.time(*until);
            }
            State::Overdue { since, why } => {
                self.u8(5);
                self.time(*since);
                self.u8(reason_code(*why));
            }
            State::Settled { outcome, by, at } => {
                self.u8(6);
                let (kind, answer) = match outcome {
                    Outcome::Succeeded { answer } => (1, answer),
                    Outcome::Refused { answer } => (2, answer),
                };
                self.u8(kind);
                self.option(answer.as_ref(), |out, answer| out.receipt(answer));
                self.settler(by);
                self.time(*at);
            }
        }
    }

    fn settler(&mut self, by: &Settler) {
        match by {
            Settler::Answer { number, proof } => {
                self.u8(match proof {
                    Proof::Record => 1,
                    Proof::Answer => 2,
                });
                self.u64(u64::from(*number));
            }
            Settler::LookUp => self.u8(3),
            Settler::Operator { who, why } => {
                self.u8(4);
                self.bytes(who.as_bytes());
                self.bytes(why.as_bytes());
            }
            Settler::NothingDone => self.u8(5),
        }
    }
}

const REASONS: [Reason; 6] =
    [Reason::StoredFailure, Reason::Mismatch, Reason::WindowClosed, Reason::Unguarded, Reason::Advised, Reason::Told];

const fn reason_code(reason: Reason) -> u8 {
    match reason {
        Reason::StoredFailure => 1,
        Reason::Mismatch => 2,
        Reason::WindowClosed => 3,
        Reason::Unguarded => 4,
        Reason::Advised => 5,
        Reason::Told => 6,
    }
}

impl Reader<'_> {
    fn intent(&mut self) -> Result<Intent, Error> {
        Ok(Intent {
            version: self.u64()?,
            request: self.request()?,
            terms: self.terms()?,
            created_at: self.time()?,
            doubt: self.option(Self::time)?,
            deadline: self.option(|reader| Ok(Deadline { from: reader.time()?, until: reader.time()? }))?,
            attempted: self.u32()?,
            reached: self.u32()?,
            attempts: self.list(Self::attempt)?,
            resource: self.option(Self::owned)?,
            alarm: match self.u8()? {
                0 => false,
                1 => true,
                _ => return Err(Error::Corrupt("alarm")),
            },
            state: self.intent_state()?,
        })
    }

    fn owned(&mut self) -> Result<String, Error> {
        self.text().map(str::to_owned)
    }

    fn u32(&mut self) -> Result<u32, Error> {
        u32::try_from(self.u64()?).map_err(|_| Error::Corrupt("number"))
    }

    fn lease_id(&mut self) -> Result<LeaseId, Error> {
        self.id()?.map(LeaseId::from_bytes).ok_or(Error::Corrupt("lease"))
    }

    fn request(&mut self) -> Result<Request, Error> {
        Ok(Request {
            name: Name::new(self.text()?).map_err(|_| Error::Corrupt("name"))?,
            key: Key::new(self.text()?).map_err(|_| Error::Corrupt("key"))?,
            carrier: self.carrier()?,
            method: Method::from_bytes(self.bytes()?).map_err(|_| Error::Corrupt("method"))?,
            origin: self.owned()?,
            target: self.owned()?,
            headers: self.list(|reader| Ok(Header { name: reader.owned()?, value: reader.value()? }))?,
            body: self.bytes()?.to_vec().into(),
            scope: self.option(|reader| Scope::from_bytes(reader.bytes()?))?,
            profile: ProfileRef { id: self.owned()?, version: self.u32()? },
        })
    }

    fn carrier(&mut self) -> Result<Carrier, Error> {
        Ok(match self.u8()? {
            1 => {
                let name = self.owned()?;
                let encoding = match self.u8()? {
                    1 => Encoding::Raw,
                    2 => Encoding::Quoted,
                    _ => return Err(Error::Corrupt("encoding")),
                };
                Carrier::Header { name, encoding, first_sent: self.option(Self::owned)? }
            }
            2 => Carrier::Member(self.owned()?),
            3 => Carrier::Parameter(self.owned()?),
            _ => return Err(Error::Corrupt("carrier")),
        })
    }

    fn value(&mut self) -> Result<Value, Error> {
        Ok(match self.u8()? {
            1 => Value::Plain(self.bytes()?.to_vec().into()),
            2 => Value::Secret(Secret { prefix: self.owned()?, source: SecretSource::Env(self.owned()?) }),
            3 => Value::Secret(Secret { prefix: self.owned()?, source: SecretSource::File(self.owned()?) }),
            _ => return Err(Error::Corrupt("value")),
        })
    }

    fn terms(&mut self) -> Result<Terms, Error> {
        let window = match self.u8()? {
            1 => Promise::Documented(self.span()?),
            2 => Promise::ForEver,
            3 => Promise::Given(self.span()?),
            4 => Promise::Assumed,
            _ => return Err(Error::Corrupt("window")),
        };
        let attempt_limit = self.span()?;
        let backoff = Backoff { base: self.span()?, cap: self.span()?, least: self.span()? };
        Ok(Terms { window, attempt_limit, backoff })
    }

    fn attempt(&mut self) -> Result<Attempt, Error> {
        Ok(Attempt {
            number: self.u32()?,
            lease: self.lease_id()?,
            started_at: self.time()?,
            until: self.time()?,
            end: match self.u8()? {
                0 => None,
                1 => Some(AttemptEnd::Answered {
                    at: self.time()?,
                    status: u16::try_from(self.u64()?).map_err(|_| Error::Corrupt("status"))?,
                    verdict: self.owned()?,
                }),
                2 => Some(AttemptEnd::NotSent { at: self.time()? }),
                3 => Some(AttemptEnd::Uncertain { at: self.time()? }),
                4 => Some(AttemptEnd::Lapsed),
                _ => return Err(Error::Corrupt("end")),
            },
        })
    }

    fn intent_state(&mut self) -> Result<State, Error> {
        Ok(match self.u8()? {
            1 => State::Ready,
            2 => State::Sending { attempt: self.u32()?, lease: self.lease()? },
            3 => State::Waiting { until: self.time()? },
            4 => State::Uncertain { until: self.time()? },
            5 => {
                let since = self.time()?;
                let code = self.u8()?;
                let why = REASONS.into_iter().find(|reason| reason_code(*reason) == code);
                State::Overdue { since, why: why.ok_or(Error::Corrupt("reason"))? }
            }
            6 => {
                let kind = self.u8()?;
                let answer = self.option(Self::receipt)?;
                let outcome = match kind {
                    1 => Outcome::Succeeded { answer },
                    2 => Outcome::Refused { answer },
                    _ => return Err(Error::Corrupt("outcome")),
                };
                State::Settled { outcome, by: self.settler()?, at: self.time()? }
            }
            _ => return Err(Error::Corrupt("state")),
        })
    }

    fn settler(&mut self) -> Result<Settler, Error> {
        Ok(match self.u8()? {
            1 => Settler::Answer { number: self.u32()?, proof: Proof::Record },
            2 => Settler::Answer { number: self.u32()?, proof: Proof::Answer },
            3 => Settler::LookUp,
            4 => Settler::Operator { who: self.owned()?, why: self.owned()? },
            5 => Settler::NothingDone,
            _ => return Err(Error::Corrupt("settler")),
        })
    }
}

#[cfg(test)]
mod tests;
