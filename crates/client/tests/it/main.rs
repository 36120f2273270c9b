//! The client's contracts from outside: the built-in files, the strict reader, and the golden table of verdicts.
//! Rules of reading are tested in the core.

mod files;
mod strict;
mod verdicts;
