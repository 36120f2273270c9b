//! Child keys: the key under which an action's own request to an upstream is sent, the same in every run of it.
//! When it may be sent, and when the next one takes its place, belongs to `action`; how it is spelled in a header to
//! whoever sends it.

use uuid::Uuid;

use crate::identity::{Identity, Key, push_prefixed};

/// The namespace of all child keys. It never changes: another one would make another action of every retry.
const NAMESPACE: Uuid = Uuid::from_u128(0x98ae_8e6c_cda4_4a68_bf70_091e_8774_13c5);

/// The child key of one `step` of an action: a version 5 UUID (RFC 9562 section 5.5) of the identity, the step and the
/// generation, in its hyphenated form.
///
/// The name is five parts, each behind its length as four bytes, most significant first: the scope (its parts in the order
/// of their names, name and value each behind its length), operation, key, step, and the generation in decimal digits.
/// `docs/reference/child-keys.json` has examples that any language can recompute.
#[must_use]
pub fn child_key(identity: &Identity, step: &str, generation: u32) -> Key {
    let mut name = Vec::new();
    let generation = generation.to_string();
    for part in [
        identity.scope.as_bytes(),
        identity.operation.as_str().as_bytes(),
        identity.key.as_str().as_bytes(),
        step.as_bytes(),
        generation.as_bytes(),
    ] {
        push_prefixed(&mut name, part);
    }
    Key::uuid(&Uuid::new_v5(&NAMESPACE, &name))
}

#[cfg(test)]
mod tests;
