//! A record as versioned bytes: `format, fields, checksum`. What cannot be decoded is corrupt and never absent; what a
//! newer version wrote says so. Columns and indexes belong to the stores.

use std::time::Duration;

use bytes::Bytes;
use sha2::{Digest as _, Sha256};

use crate::error::Error;
use crate::fingerprint::{Fingerprint, Rule};
use crate::policy::Effect;
use crate::receipt::{Body, Receipt};
use crate::record::{Author, Holder, Keyed, Lease, LeaseId, Record, State, Why};
use crate::time::Timestamp;

/// The newest format that this version reads and writes.
pub const FORMAT_NEWEST: u8 = FORMAT_KEYED;

/// The format of what is kept for child keys. Everything else is written in the first one, as before.
const FORMAT_KEYED: u8 = 2;
const FORMAT_FIRST: u8 = 1;

/// Bytes of the checksum at the end: enough to notice rot, no defence against an attacker.
const CHECKSUM_BYTES: usize = 8;

/// Writes a record.
#[must_use]
pub fn encode(record: &Record) -> Vec<u8> {
    // What the first format could not say is not said in the second one either: one record has one spelling.
    let keyed = record.keyed.filter(|keyed| *keyed != Keyed::UNWRITTEN);
    let mut out = Writer(vec![if keyed.is_some() { FORMAT_KEYED } else { FORMAT_FIRST }]);
    out.u64(record.version);
    out.bytes(record.fingerprint.rule().as_text().as_bytes());
    out.bytes(record.fingerprint.digest());
    out.u8(match record.effect {
        Effect::Coupled => 1,
        Effect::KeyedUpstream => 2,
        Effect::Other => 3,
    });
    out.time(record.claimed_at);
    out.bytes(record.lease.id.as_bytes());
    out.bytes(record.lease.holder.as_ref().map_or(&[], |holder| holder.as_bytes().as_slice()));
    out.time(record.lease.renewed_at);
    out.span(record.lease.span);
    out.time(record.lease.until);
    out.time(record.lease.attempt_until);
    if let Some(keyed) = keyed {
        out.u64(u64::from(keyed.generation));
        out.span(keyed.window);
        out.span(keyed.attempt_limit);
        out.u8(u8::from(keyed.doubt));
    }
    out.state(&record.state);
    let checksum = Sha256::digest(&out.0);
    out.0.extend(checksum.iter().take(CHECKSUM_BYTES));
    out.0
}

/// Reads what [`encode`] wrote.
///
/// # Errors
/// [`Error::Newer`] where a newer version wrote it, [`Error::Corrupt`] where it cannot be read for any other reason.
pub fn decode(bytes: &[u8]) -> Result<Record, Error> {
    match bytes.first() {
        None => return Err(Error::Corrupt("empty")),
        Some(&found) if found > FORMAT_NEWEST => return Err(Error::Newer { found, known: FORMAT_NEWEST }),
        Some(&found) if found < 1 => return Err(Error::Corrupt("format")),
        Some(_) => {}
    }
    let (fields, checksum) =
        bytes.len().checked_sub(CHECKSUM_BYTES).map(|at| bytes.split_at(at)).ok_or(Error::Corrupt("short"))?;
    if !Sha256::digest(fields).starts_with(checksum) {
        return Err(Error::Corrupt("checksum"));
    }
    let (format, fields) = fields.split_first().ok_or(Error::Corrupt("short"))?;
    let mut reader = Reader(fields);
    let record = reader.record(*format)?;
    if reader.0.is_empty() { Ok(record) } else { Err(Error::Corrupt("trailing bytes")) }
}

struct Writer(Vec<u8>);

impl Writer {
    fn u8(&mut self, value: u8) {
        self.0.push(value);
    }

    fn u64(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_be_bytes());
    }

    fn time(&mut self, value: Timestamp) {
        self.0.extend_from_slice(&value.as_millis().to_be_bytes());
    }

    fn span(&mut self, value: Duration) {
        self.u64(u64::try_from(value.as_millis()).unwrap_or(u64::MAX));
    }

    fn bytes(&mut self, value: &[u8]) {
        self.u64(value.len() as u64);
        self.0.extend_from_slice(value);
    }

    fn state(&mut self, state: &State) {
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

    fn receipt(&mut self, receipt: &Receipt) {
        self.u64(u64::from(receipt.status));
        self.u64(receipt.headers.len() as u64);
        for (name, value) in receipt.headers.iter() {
            self.bytes(name.as_bytes());
            self.bytes(value);
        }
        match &receipt.body {
            Body::Kept(bytes) => {
                self.u8(1);
                self.bytes(bytes);
            }
            Body::NotKept => self.u8(2),
        }
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let (head, rest) = self.0.split_first_chunk::<N>().ok_or(Error::Corrupt("short field"))?;
        self.0 = rest;
        Ok(*head)
    }

    fn u8(&mut self) -> Result<u8, Error> {
        self.array::<1>().map(|[byte]| byte)
    }

    fn u64(&mut self) -> Result<u64, Error> {
        self.array().map(u64::from_be_bytes)
    }

    fn time(&mut self) -> Result<Timestamp, Error> {
        self.array().map(|bytes| Timestamp::from_millis(i64::from_be_bytes(bytes)))
    }

    fn span(&mut self) -> Result<Duration, Error> {
        self.u64().map(Duration::from_millis)
    }

    fn bytes(&mut self) -> Result<&'a [u8], Error> {
        let length = usize::try_from(self.u64()?).map_err(|_| Error::Corrupt("length"))?;
        let (head, rest) = self.0.split_at_checked(length).ok_or(Error::Corrupt("length"))?;
        self.0 = rest;
        Ok(head)
    }

    fn text(&mut self) -> Result<&'a str, Error> {
        std::str::from_utf8(self.bytes()?).map_err(|_| Error::Corrupt("text"))
    }

    fn id(&mut self) -> Result<Option<[u8; 16]>, Error> {
        match self.bytes()? {
            [] => Ok(None),
            bytes => bytes.try_into().map(Some).map_err(|_| Error::Corrupt("id")),
        }
    }

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
        let lease = Lease {
            id: self.id()?.map(LeaseId::from_bytes).ok_or(Error::Corrupt("lease"))?,
            holder: self.id()?.map(Holder::from_bytes),
            renewed_at: self.time()?,
            span: self.span()?,
            until: self.time()?,
            attempt_until: self.time()?,
        };
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

    fn receipt(&mut self) -> Result<Receipt, Error> {
        let status = u16::try_from(self.u64()?).map_err(|_| Error::Corrupt("status"))?;
        let count = self.u64()?;
        let mut headers = Vec::new();
        for _ in 0..count {
            let name = self.text()?.to_owned();
            headers.push((name, Bytes::copy_from_slice(self.bytes()?)));
        }
        let body = match self.u8()? {
            1 => Body::Kept(Bytes::copy_from_slice(self.bytes()?)),
            2 => Body::NotKept,
            _ => return Err(Error::Corrupt("body")),
        };
        Ok(Receipt { status, headers: headers.into(), body })
    }
}

#[cfg(test)]
mod tests;
