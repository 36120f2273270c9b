//! Every rule of PROTOCOL section 5 as a table over all states and events, and properties over sequences of them.
//!
//! A table has a line for each state and a column for each event; [`tables::check`] refuses one that lacks either.
//! How stores carry a transition out is tested by `store::contract`.

mod catalogue;
mod claims;
mod ends;
mod fence;
mod operator;
mod sequences;
mod sweeping;
mod tables;
mod upstream;
