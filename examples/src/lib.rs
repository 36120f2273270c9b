//! The examples are the programs in this folder, one for each door; this library is empty so that the package has a root.
//!
//! What does not belong here: anything that two examples would share. An example is read on its own.
