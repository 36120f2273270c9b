//! The client as its users see it.

mod peer;
mod transport;
