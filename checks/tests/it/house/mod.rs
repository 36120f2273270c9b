//! Tests of the house itself: the rules of `CONTRIBUTING.md`, executed.
//!
//! Every rule is a pure function from paths and texts to faults. One test runs it over the tree, another feeds it a
//! planted fault, so that each rule has been seen to fail. What does not belong here: what the product does.

mod dependencies;
mod documents;
mod imports;
mod markers;
mod packages;
mod probed;
mod purity;
mod reports;
mod sizes;
mod sql;
mod tokens;
mod tree;
