//! Processes killed with SIGKILL at every named point and at random moments, then restarted and checked.
//!
//! What does not belong here: what a loss of power leaves of the files (`powerloss`).

pub(crate) mod action;
mod late;
pub(crate) mod load;
mod owner;
mod points;
pub(crate) mod process;
mod worker;
