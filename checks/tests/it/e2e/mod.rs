//! Real clients against real processes: `curl` and the Python package `stripe` in front, `counterfoil serve` between,
//! a service of ours or the Python package `httpbin` behind.
//!
//! What does not belong here: what one part alone promises, which is tested beside that part.

mod curl;
mod files;
mod process;
mod proxied;
mod python;
mod served;
mod stops;
mod upstream;
