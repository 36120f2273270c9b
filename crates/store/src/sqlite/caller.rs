//! The same promise on a transaction that the caller owns.
