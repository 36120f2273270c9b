//! What the measurements share: nothing yet. Each measurement is a bench target of this package.
//!
//! What does not belong here: tests of behaviour (`checks`), and figures, which live in `docs/`.
