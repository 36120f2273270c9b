//! What a test needs of PostgreSQL: a private server, a pooler before it, a wire that loses replies, a clock that only
//! the test moves. For the contract suite and for tests of other packages; nothing here serves anybody.
//!
//! What does not belong here: what is tested.

mod bouncer;
mod server;
mod time;
mod wire;

pub use self::bouncer::Bouncer;
pub use self::server::{Database, Server};
pub use self::time::TestTime;
pub use self::wire::Wire;
