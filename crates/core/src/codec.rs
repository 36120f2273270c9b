//! How stored values are spelled as bytes: a format's number, fields with their lengths, a checksum.
//! What the fields mean belongs to whoever stores them (`record`, `intent`).

use std::time::Duration;

use bytes::Bytes;
use sha2::{Digest as _, Sha256};

use crate::error::Error;
use crate::receipt::{Body, Receipt};
use crate::record::{Holder, Lease, LeaseId};
use crate::time::Timestamp;

/// Bytes of the checksum at the end: enough to notice rot, no defence against an attacker.
pub(crate) const CHECKSUM_BYTES: usize = 8;

/// The format of `bytes` and its fields, where its checksum is right and the format is known.
///
/// # Errors
/// [`Error::Newer`] where a newer version wrote it, [`Error::Corrupt`] where it cannot be read for any other reason.
pub(crate) fn open(bytes: &[u8], known: u8) -> Result<(u8, Reader<'_>), Error> {
    match bytes.first() {
        None => return Err(Error::Corrupt("empty")),
        Some(&found) if found > known => return Err(Error::Newer { found, known }),
        Some(&found) if found < 1 => return Err(Error::Corrupt("format")),
        Some(_) => {}
    }
    let (fields, checksum) =
        bytes.len().checked_sub(CHECKSUM_BYTES).map(|at| bytes.split_at(at)).ok_or(Error::Corrupt("short"))?;
    if !Sha256::digest(fields).starts_with(checksum) {
        return Err(Error::Corrupt("checksum"));
    }
    let (format, fields) = fields.split_first().ok_or(Error::Corrupt("short"))?;
    Ok((*format, Reader(fields)))
}

pub(crate) struct Writer(pub(crate) Vec<u8>);

impl Writer {
    pub(crate) fn format(format: u8) -> Self {
        Self(vec![format])
    }

    /// All that was written, with its checksum.
    pub(crate) fn seal(mut self) -> Vec<u8> {
        let checksum = Sha256::digest(&self.0);
        self.0.extend(checksum.iter().take(CHECKSUM_BYTES));
        self.0
    }

    pub(crate) fn u8(&mut self, value: u8) {
        self.0.push(value);
    }

    pub(crate) fn u64(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_be_bytes());
    }

    pub(crate) fn time(&mut self, value: Timestamp) {
        self.0.extend_from_slice(&value.as_millis().to_be_bytes());
    }

    pub(crate) fn span(&mut self, value: Duration) {
        self.u64(u64::try_from(value.as_millis()).unwrap_or(u64::MAX));
    }

    pub(crate) fn bytes(&mut self, value: &[u8]) {
        self.u64(value.len() as u64);
        self.0.extend_from_slice(value);
    }

    /// Whether there is one, then what it is.
    pub(crate) fn option<T>(&mut self, value: Option<&T>, write: impl FnOnce(&mut Self, &T)) {
        self.u8(u8::from(value.is_some()));
        if let Some(value) = value {
            write(self, value);
        }
    }

    pub(crate) fn lease(&mut self, lease: &Lease) {
        self.bytes(lease.id.as_bytes());
        self.bytes(lease.holder.as_ref().map_or(&[], |holder| holder.as_bytes().as_slice()));
        self.time(lease.renewed_at);
        self.span(lease.span);
        self.time(lease.until);
        self.time(lease.attempt_until);
    }

    pub(crate) fn receipt(&mut self, receipt: &Receipt) {
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

pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    /// What was read, where nothing is left.
    pub(crate) fn done<T>(&self, value: T) -> Result<T, Error> {
        if self.0.is_empty() { Ok(value) } else { Err(Error::Corrupt("trailing bytes")) }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let (head, rest) = self.0.split_first_chunk::<N>().ok_or(Error::Corrupt("short field"))?;
        self.0 = rest;
        Ok(*head)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Error> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Error> {
        self.array().map(u64::from_be_bytes)
    }

    pub(crate) fn time(&mut self) -> Result<Timestamp, Error> {
        self.array().map(|bytes| Timestamp::from_millis(i64::from_be_bytes(bytes)))
    }

    pub(crate) fn span(&mut self) -> Result<Duration, Error> {
        self.u64().map(Duration::from_millis)
    }

    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], Error> {
        let length = usize::try_from(self.u64()?).map_err(|_| Error::Corrupt("length"))?;
        let (head, rest) = self.0.split_at_checked(length).ok_or(Error::Corrupt("length"))?;
        self.0 = rest;
        Ok(head)
    }

    pub(crate) fn text(&mut self) -> Result<&'a str, Error> {
        std::str::from_utf8(self.bytes()?).map_err(|_| Error::Corrupt("text"))
    }

    pub(crate) fn id(&mut self) -> Result<Option<[u8; 16]>, Error> {
        match self.bytes()? {
            [] => Ok(None),
            bytes => bytes.try_into().map(Some).map_err(|_| Error::Corrupt("id")),
        }
    }

    pub(crate) fn option<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<Option<T>, Error> {
        match self.u8()? {
            0 => Ok(None),
            1 => read(self).map(Some),
            _ => Err(Error::Corrupt("option")),
        }
    }

    /// As many values as were counted: nothing is set aside for them before they are there.
    pub(crate) fn list<T>(&mut self, read: impl Fn(&mut Self) -> Result<T, Error>) -> Result<Vec<T>, Error> {
        let count = self.u64()?;
        let mut all = Vec::new();
        for _ in 0..count {
            all.push(read(self)?);
        }
        Ok(all)
    }

    pub(crate) fn lease(&mut self) -> Result<Lease, Error> {
        Ok(Lease {
            id: self.id()?.map(LeaseId::from_bytes).ok_or(Error::Corrupt("lease"))?,
            holder: self.id()?.map(Holder::from_bytes),
            renewed_at: self.time()?,
            span: self.span()?,
            until: self.time()?,
            attempt_until: self.time()?,
        })
    }

    pub(crate) fn receipt(&mut self) -> Result<Receipt, Error> {
        let status = u16::try_from(self.u64()?).map_err(|_| Error::Corrupt("status"))?;
        let headers = self.list(|reader| Ok((reader.text()?.to_owned(), Bytes::copy_from_slice(reader.bytes()?))))?;
        let body = match self.u8()? {
            1 => Body::Kept(Bytes::copy_from_slice(self.bytes()?)),
            2 => Body::NotKept,
            _ => return Err(Error::Corrupt("body")),
        };
        Ok(Receipt { status, headers: headers.into(), body })
    }
}
