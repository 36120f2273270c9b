//! Tests of the server from outside: configurations, the proxy and the admin listener on loopback.
//! What is true only of the built command belongs to the command line's tests and to `checks`.

mod config;
mod golden;
