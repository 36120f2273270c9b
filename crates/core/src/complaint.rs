//! What is wrong with a profile file: every complaint with its path and what would be accepted.
//! Reading belongs to `reader`.

use std::cell::RefCell;
use std::fmt;

/// One thing that is wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Complaint {
    /// Where: `window.span`, `answer[0].status`; empty: the file as a whole.
    pub path: String,
    /// What is wrong.
    pub fault: String,
    /// What would be accepted.
    pub accepted: String,
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.path.is_empty() { "the file" } else { &self.path };
        write!(f, "{path}: {}; accepted: {}", self.fault, self.accepted)
    }
}

/// All that is wrong, at least one thing, in the order of reading.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Complaints(pub Vec<Complaint>);

impl fmt::Display for Complaints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.len() {
            1 => f.write_str("the profile has 1 fault")?,
            count => write!(f, "the profile has {count} faults")?,
        }
        self.0.iter().try_for_each(|complaint| write!(f, "\n  {complaint}"))
    }
}

impl std::error::Error for Complaints {}

/// Where complaints are put while reading goes on.
#[derive(Default)]
pub(super) struct Pad(RefCell<Vec<Complaint>>);

impl Pad {
    pub(super) fn add(&self, path: impl Into<String>, fault: impl Into<String>, accepted: impl Into<String>) {
        let complaint = Complaint { path: path.into(), fault: fault.into(), accepted: accepted.into() };
        self.0.borrow_mut().push(complaint);
    }

    pub(super) fn into_complaints(self) -> Complaints {
        Complaints(self.0.into_inner())
    }
}
