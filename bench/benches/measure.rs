//! The entry of `cargo bench -p counterfoil-bench`, and of the servers that it starts as processes of their own.
//!
//! What does not belong here: everything else, which is the library of this package, so that it is linted and its
//! arithmetic tested like other code.

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    // Under `target/`, so on the disk that the build is on: a memory file system would make every fsync free.
    counterfoil_bench::main(Path::new(env!("CARGO_TARGET_TMPDIR")))
}
