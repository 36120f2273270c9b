//! What a test needs of MariaDB: a private server, a wire before it that loses replies, a clock that only the test
//! moves. For the contract suite and for tests of other packages; nothing here serves anybody.
//!
//! What does not belong here: what is tested.

mod server;
mod time;
mod wire;

pub use self::server::{Database, Server};
pub use self::time::TestTime;
pub use self::wire::Wire;
