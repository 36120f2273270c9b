//! Where records are kept, and the gate through which every write goes.
//!
//! [`RecordStore`] is the seam: one conditional write and a few reads. [`Gate`] loads, asks the core, writes, and does
//! it again where it lost. [`IntentStore`] is the same seam for what callers keep. What does not belong here: rules (core), status codes and headers (middleware).

pub mod clock;
#[cfg(feature = "contract")]
pub mod contract;
pub mod error;
#[cfg(any(test, feature = "contract"))]
pub mod faulty;
pub mod gate;
pub mod intents;
pub mod memory;
#[cfg(feature = "mysql")]
pub mod mysql;
#[cfg(any(feature = "postgres", feature = "mysql"))]
mod pace;
pub mod points;
#[cfg(feature = "postgres")]
pub mod postgres;
pub mod seam;
pub mod sqlite;
#[cfg(any(feature = "postgres", feature = "mysql"))]
mod within;

pub use error::{Applied, ErrorKind, StoreError};
pub use gate::{Begun, Ended, Gate, Permit};
pub use intents::IntentStore;
pub use memory::MemoryStore;
#[cfg(feature = "mysql")]
pub use mysql::MysqlStore;
#[cfg(feature = "postgres")]
pub use postgres::PostgresStore;
pub use seam::RecordStore;
pub use sqlite::SqliteStore;
