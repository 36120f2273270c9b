//! Callers known by a key of their own, of which only the SHA-256 is kept. Reading the table belongs to `config`.

use std::future::ready;
use std::sync::{Arc, PoisonError, RwLock};

use counterfoil_middleware::PrincipalFault;
use http::HeaderName;
use http::request::Parts;
use sha2::{Digest as _, Sha256};
use subtle::{ConditionallySelectable as _, ConstantTimeEq as _};

use super::credential::{credential, refused};
use super::{Caller, CallerAnswer, Source};
use crate::config::{ApiKey, ApiKeys};

/// A digest as four numbers, which compare much faster than 32 bytes.
type Digest = [u64; 4];

/// The callers of the table that was taken last.
pub(super) struct KeyedCallers(RwLock<Arc<Table>>);

/// The table of keys.
struct Table {
    header: HeaderName,
    keys: Vec<(Digest, ApiKey)>,
}

impl KeyedCallers {
    pub(super) fn new(keys: &ApiKeys) -> Self {
        Self(RwLock::new(Arc::new(Table::new(keys))))
    }

    /// From now on these keys are known, and no others.
    pub(super) fn take(&self, keys: &ApiKeys) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(Table::new(keys));
    }

    fn find(&self, parts: &Parts) -> Result<Caller, PrincipalFault> {
        let table = self.0.read().unwrap_or_else(PoisonError::into_inner).clone();
        table.find(parts)
    }
}

impl Table {
    fn new(keys: &ApiKeys) -> Self {
        let keep = |key: &ApiKey| (digest(&key.sha256), key.clone());
        Self { header: keys.header.value.clone(), keys: keys.keys.iter().map(keep).collect() }
    }

    fn find(&self, parts: &Parts) -> Result<Caller, PrincipalFault> {
        let given = digest(&Sha256::digest(credential(parts, &self.header)?.as_bytes()).into());
        // The whole table is compared, each entry whole, so that the time taken tells nothing about either.
        let mut found = u32::MAX;
        for (index, (digest, _)) in (0..).zip(&self.keys) {
            let differing = digest.iter().zip(&given).fold(0, |differing, (mine, given)| differing | (mine ^ given));
            found.conditional_assign(&index, differing.ct_eq(&0));
        }
        let key = usize::try_from(found).ok().and_then(|found| self.keys.get(found));
        let (_, key) = key.ok_or_else(|| refused(&self.header, "the key is not known"))?;
        Ok(Caller::named(key.principal.clone(), key.claims.clone()))
    }
}

fn digest(bytes: &[u8; 32]) -> Digest {
    let mut numbers = [0; 4];
    for (number, eight) in numbers.iter_mut().zip(bytes.as_chunks::<8>().0) {
        *number = u64::from_be_bytes(*eight);
    }
    numbers
}

impl Source for Arc<KeyedCallers> {
    fn caller<'a>(&'a self, parts: &'a Parts) -> CallerAnswer<'a> {
        Box::pin(ready(self.find(parts)))
    }
}

#[cfg(test)]
mod tests;
