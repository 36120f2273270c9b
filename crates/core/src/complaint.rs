//! What is wrong with a file that a person wrote: every complaint with its path and what would be accepted, all at once.
//! Reading files belongs to whoever knows their settings (the server's configuration, the client's profiles).

use std::cell::RefCell;
use std::fmt;

/// One thing that is wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Complaint {
    /// Where: `defaults.retention`, `operation[0].match`, `--listen`; empty: the file as a whole.
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
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Complaints {
    /// What was read: `the profile`.
    pub about: &'static str,
    /// What is wrong with it.
    pub all: Vec<Complaint>,
}

impl fmt::Display for Complaints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.all.len() {
            1 => write!(f, "{} has 1 fault", self.about)?,
            count => write!(f, "{} has {count} faults", self.about)?,
        }
        self.all.iter().try_for_each(|complaint| write!(f, "\n  {complaint}"))
    }
}

impl std::error::Error for Complaints {}

/// Where complaints are put while reading goes on.
pub struct Pad {
    about: &'static str,
    noted: RefCell<Vec<Complaint>>,
}

impl Pad {
    /// An empty one for what is read, such as `the profile`.
    #[must_use]
    pub const fn about(about: &'static str) -> Self {
        Self { about, noted: RefCell::new(Vec::new()) }
    }

    /// Notes one thing that is wrong, and what would be accepted.
    pub fn add(&self, path: impl Into<String>, fault: impl Into<String>, accepted: impl Into<String>) {
        let complaint = Complaint { path: path.into(), fault: fault.into(), accepted: accepted.into() };
        self.noted.borrow_mut().push(complaint);
    }

    /// What was read, where nothing is wrong with it.
    ///
    /// # Errors
    /// All complaints.
    pub fn judge<T>(self, read: Option<T>) -> Result<T, Complaints> {
        let all = self.noted.into_inner();
        match read {
            Some(read) if all.is_empty() => Ok(read),
            Some(_) | None => Err(Complaints { about: self.about, all }),
        }
    }
}
