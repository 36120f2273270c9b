//! A record as versioned bytes: `format, fields, checksum`. What cannot be decoded is corrupt and never absent; what a
//! newer version wrote says so. Columns and indexes belong to the stores.

use crate::codec::{Reader, Writer, open};
use crate::error::Error;
use crate::fingerprint::{Fingerprint, Rule};
use crate::policy::Effect;
use crate::record::{Author, Keyed, Record, State, Why};

/// The newest format that this version reads and writes.
pub const FORMAT_NEWEST: u8 = FORMAT_KEYED;

/// The format of what is kept for child keys. Everything else is written in the first one, as before.
const FORMAT_KEYED: u8 = 2;
const FORMAT_FIRST: u8 = 1;

/// Writes a record.
#[must_use]
pub fn encode(record: &Record) -> Vec<u8> {
    // What the first format could not say is not said in the second one either: one record has one spelling.
    let keyed = record.keyed.filter(|keyed| *keyed != Keyed::UNWRITTEN);
    let mut out = Writer::format(if keyed.is_some() { FORMAT_KEYED } else { FORMAT_FIRST });
    out.u64(record.version);
    out.bytes(record.fingerprint.rule().as_text().as_bytes());
    out.bytes(record.fingerprint.digest());
    out.u8(match record.effect {
        Effect::Coupled => 1,
        Effect::KeyedUpstream => 2,
        Effect::Other => 3,
    });
    out.time(record.claimed_at);
    out.lease(&record.lease);
    if let Some(keyed) = keyed {
        out.u64(u64::from(keyed.generation));
        out.span(keyed.window);
        out.span(keyed.attempt_limit);
        out.u8(u8::from(keyed.doubt));
    }
    out.record_state(&record.state);
    out.seal()
}

impl Writer {
    fn record_state(&mut self, state: &State) {
        match state {
            State::Running => self.u8(1),
            State::Unknown { since, why } => {
                self.u8(2);
                self.time(*since);
                self.u8(match why {
                    Why::Lapsed => 1,
                    Why::Doubted => 2,
                    Why::AnsweredWithoutSettle => 3,
                    Why::WindowClosed => 4,
                    Why::Quarantined => 5,
                });
            }
            State::Done { receipt, author, completed_at, expires_at, refuse_until } => {
                self.u8(3);
                self.receipt(receipt);
                self.u8(match author {
                    Author::Owner => 1,
                    Author::Operator => 2,
                });
                self.time(*completed_at);
                self.time(*expires_at);
                self.u8(u8::from(refuse_until.is_some()));
                self.time(refuse_until.unwrap_or(*expires_at));
            }
            State::Spent { until } => {
                self.u8(4);
                self.time(*until);
            }
        }
    }
}

/// Reads what [`encode`] wrote.
///
/// # Errors
/// [`Error::Newer`] where a newer version wrote it, [`Error::Corrupt`] where it cannot be read for any other reason.
pub fn decode(bytes: &[u8]) -> Result<Record, Error> {
    let (format, mut reader) = open(bytes, FORMAT_NEWEST)?;
    let record = reader.record(format)?;
    reader.done(record)
}

impl Reader<'_> {
    fn record(&mut self, format: u8) -> Result<Record, Error> {
        let version = self.u64()?;
        let rule = self.rule()?;
        let digest = self.bytes()?.try_into().map_err(|_| Error::Corrupt("digest"))?;
        let effect = match self.u8()? {
            1 => Effect::Coupled,
            2 => Effect::KeyedUpstream,
            3 => Effect::Other,
            _ => return Err(Error::Corrupt("effect")),
        };
        let claimed_at = self.time()?;
        let lease = self.lease()?;
        let fingerprint = Fingerprint::from_parts(rule, digest);
        let keyed = match (format, effect) {
            (FORMAT_FIRST, Effect::KeyedUpstream) => Some(Keyed::UNWRITTEN),
            (FORMAT_FIRST, Effect::Coupled | Effect::Other) => None,
            (_, Effect::KeyedUpstream) => match self.keyed()? {
                Keyed::UNWRITTEN => return Err(Error::Corrupt("keyed")),
                keyed => Some(keyed),
            },
            (_, Effect::Coupled | Effect::Other) => return Err(Error::Corrupt("effect")),
        };
        Ok(Record { version, fingerprint, effect, keyed, claimed_at, lease, state: self.state()? })
    }

    fn keyed(&mut self) -> Result<Keyed, Error> {
        Ok(Keyed {
            generation: u32::try_from(self.u64()?).map_err(|_| Error::Corrupt("generation"))?,
            window: self.span()?,
            attempt_limit: self.span()?,
            doubt: match self.u8()? {
                0 => false,
                1 => true,
                _ => return Err(Error::Corrupt("doubt")),
            },
        })
    }

    /// A rule in the one spelling that is written: what is read must be written back as it stood.
    fn rule(&mut self) -> Result<Rule, Error> {
        let text = self.text()?;
        let rule: Option<Rule> = text.parse().ok();
        rule.filter(|rule| rule.as_text() == text).ok_or(Error::Corrupt("rule"))
    }

    fn state(&mut self) -> Result<State, Error> {
        Ok(match self.u8()? {
            1 => State::Running,
            2 => State::Unknown { since: self.time()?, why: self.why()? },
            3 => {
                let receipt = self.receipt()?;
                let author = match self.u8()? {
                    1 => Author::Owner,
                    2 => Author::Operator,
                    _ => return Err(Error::Corrupt("author")),
                };
                let (completed_at, expires_at) = (self.time()?, self.time()?);
                let refuse_until = match (self.u8()?, self.time()?) {
                    (0, until) if until == expires_at => None,
                    (1, until) => Some(until),
                    _ => return Err(Error::Corrupt("expiry")),
                };
                State::Done { receipt, author, completed_at, expires_at, refuse_until }
            }
            4 => State::Spent { until: self.time()? },
            _ => return Err(Error::Corrupt("state")),
        })
    }

    fn why(&mut self) -> Result<Why, Error> {
        match self.u8()? {
            1 => Ok(Why::Lapsed),
            2 => Ok(Why::Doubted),
            3 => Ok(Why::AnsweredWithoutSettle),
            4 => Ok(Why::WindowClosed),
            5 => Ok(Why::Quarantined),
            _ => Err(Error::Corrupt("why")),
        }
    }
}

#[cfg(test)]
mod tests;
