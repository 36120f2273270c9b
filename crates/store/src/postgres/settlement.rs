//! What an application settled in its own transaction: the bytes that `counterfoil.settlement` made, and the record that
//! they make of the one before.
//!
//! What does not belong here: who may settle (core), and the function that wrote them (`2.sql`).

use std::time::Duration;

use bytes::Bytes;
use counterfoil_core::action::settle;
use counterfoil_core::receipt::Body;
use counterfoil_core::{Error, Expiry, Receipt, Record, Timestamp};
use sha2::{Digest as _, Sha256};

/// The newest format that this version reads.
const FORMAT_NEWEST: u8 = 1;

/// Bytes of the checksum at the end.
const CHECKSUM_BYTES: usize = 8;

/// The record that a settlement makes of `before`.
pub(super) fn settled(before: &Record, bytes: &[u8]) -> Result<Record, Error> {
    let mut reader = Reader::checked(bytes)?;
    let at = Timestamp::from_millis(reader.i64()?);
    let retention = span(reader.i64()?)?;
    let expiry = match reader.i64()? {
        -1 => Expiry::NewAction,
        refuse => Expiry::Refuse(span(refuse)?),
    };
    let receipt = reader.receipt()?;
    settle(Some(before), before.lease.id, receipt, retention, expiry, at)
        .map_err(|_| Error::Corrupt("a settlement of what cannot be settled"))
}

/// The receipt of a settlement.
pub(super) fn receipt(bytes: &[u8]) -> Result<Receipt, Error> {
    let mut reader = Reader::checked(bytes)?;
    for _ in ["when", "retention", "refusal"] {
        reader.i64()?;
    }
    reader.receipt()
}

fn span(millis: i64) -> Result<Duration, Error> {
    u64::try_from(millis).map(Duration::from_millis).map_err(|_| Error::Corrupt("settlement span"))
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// Behind the format, without the checksum.
    fn checked(bytes: &'a [u8]) -> Result<Self, Error> {
        match bytes.first() {
            Some(&found) if found > FORMAT_NEWEST => return Err(Error::Newer { found, known: FORMAT_NEWEST }),
            Some(1) => {}
            Some(_) | None => return Err(Error::Corrupt("settlement format")),
        }
        let (fields, checksum) = bytes
            .len()
            .checked_sub(CHECKSUM_BYTES)
            .map(|at| bytes.split_at(at))
            .ok_or(Error::Corrupt("short settlement"))?;
        if !Sha256::digest(fields).starts_with(checksum) {
            return Err(Error::Corrupt("settlement checksum"));
        }
        Ok(Self(fields.get(1..).unwrap_or_default()))
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let (head, rest) = self.0.split_first_chunk::<N>().ok_or(Error::Corrupt("short settlement"))?;
        self.0 = rest;
        Ok(*head)
    }

    fn i64(&mut self) -> Result<i64, Error> {
        self.array().map(i64::from_be_bytes)
    }

    fn number<T: TryFrom<i32>>(&mut self) -> Result<T, Error> {
        let number = self.array().map(i32::from_be_bytes)?;
        T::try_from(number).map_err(|_| Error::Corrupt("settlement number"))
    }

    fn framed(&mut self) -> Result<&'a [u8], Error> {
        let length = self.number()?;
        let (head, rest) = self.0.split_at_checked(length).ok_or(Error::Corrupt("settlement length"))?;
        self.0 = rest;
        Ok(head)
    }

    fn receipt(mut self) -> Result<Receipt, Error> {
        let status = self.number()?;
        let count: usize = self.number()?;
        let mut headers = Vec::new();
        for _ in 0..count {
            let name = std::str::from_utf8(self.framed()?).map_err(|_| Error::Corrupt("settlement header"))?;
            headers.push((name.to_owned(), Bytes::copy_from_slice(self.framed()?)));
        }
        Ok(Receipt { status, headers: headers.into(), body: Body::Kept(Bytes::copy_from_slice(self.0)) })
    }
}
