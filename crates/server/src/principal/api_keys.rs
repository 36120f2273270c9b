//! Callers known by a key of their own, of which only the SHA-256 is kept. Reading the table belongs to `config`.

use std::future::ready;

use counterfoil_middleware::PrincipalFault;
use http::HeaderName;
use http::request::Parts;
use sha2::{Digest as _, Sha256};
use subtle::{ConditionallySelectable as _, ConstantTimeEq as _};

use super::credential::{credential, refused};
use super::{Caller, CallerAnswer, Source};
use crate::config::{ApiKey, ApiKeys};

/// The table of keys.
pub(super) struct KeyedCallers {
    header: HeaderName,
    keys: Vec<ApiKey>,
}

impl KeyedCallers {
    pub(super) fn new(keys: &ApiKeys) -> Self {
        Self { header: keys.header.value.clone(), keys: keys.keys.clone() }
    }

    fn find(&self, parts: &Parts) -> Result<Caller, PrincipalFault> {
        let given = Sha256::digest(credential(parts, &self.header)?.as_bytes());
        // The whole table is compared, each entry whole, so that the time taken tells nothing about either.
        let mut found = u32::MAX;
        for (index, key) in (0..).zip(&self.keys) {
            found.conditional_assign(&index, key.sha256.as_slice().ct_eq(&given));
        }
        let key = usize::try_from(found).ok().and_then(|found| self.keys.get(found));
        let key = key.ok_or_else(|| refused(&self.header, "the key is not known"))?;
        Ok(Caller::named(key.principal.clone(), key.claims.clone()))
    }
}

impl Source for KeyedCallers {
    fn caller<'a>(&'a self, parts: &'a Parts) -> CallerAnswer<'a> {
        Box::pin(ready(self.find(parts)))
    }
}

#[cfg(test)]
mod tests;
