//! Real clients against real processes: `curl`, the Python packages `stripe` and `httpx`, a browser or nginx in front,
//! `counterfoil serve` between, a service of ours, nginx or the Python package `httpbin` behind.
//!
//! What does not belong here: what one part alone promises, which is tested beside that part.

mod browser;
mod coupled;
mod coupled_django;
mod coupled_kills;
mod coupled_open;
mod curl;
mod failover;
mod files;
mod hangup;
mod kills;
mod lossy;
mod lost_replies;
mod mysql;
mod nginx;
mod nginx_behind;
mod nginx_front;
mod other_kills;
mod outbox;
mod outbox_kills;
mod postgres;
mod probe;
mod probe_hooks;
mod probe_page;
mod probed;
mod process;
mod proxied;
mod python;
#[path = "../../../../crates/middleware/tests/it/schema.rs"]
mod schema;
mod sends;
mod sends_killed;
mod served;
mod shop;
mod stops;
mod upstream;
