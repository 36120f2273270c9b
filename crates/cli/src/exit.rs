//! Every exit code, with its words. `send --help` and `docs/reference/cli.md` repeat the table, and a test compares them.

/// How a command ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Exit {
    Done,
    Internal,
    Usage,
    Refused,
    Uncertain,
    InProgress,
    Mismatch,
    WindowClosed,
    Blocked,
    NotExecuted,
    Interrupted,
    /// `probe` has codes of its own.
    Probe(u8),
}

/// What `send --help` says of them.
pub(crate) const TABLE: &str = "\
Exit codes:
    0  done
    1  the system or the journal failed; the message says what to do
    2  the arguments, or a file or variable that they name, are wrong; nothing was sent
    3  refused for good
    4  uncertain: run the same command again, or `counterfoil intents recover`
    5  in progress elsewhere
    6  the name stands for another request; nothing was sent
    7  the window is closed
    8  blocked by an intent in doubt; nothing was sent
   75  certainly not executed: run the same command again later
  130  interrupted; the intent is kept, and the same command goes on with it";

impl Exit {
    /// The number.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Internal => 1,
            Self::Usage => 2,
            Self::Refused => 3,
            Self::Uncertain => 4,
            Self::InProgress => 5,
            Self::Mismatch => 6,
            Self::WindowClosed => 7,
            Self::Blocked => 8,
            Self::NotExecuted => 75,
            Self::Interrupted => 130,
            Self::Probe(code) => code,
        }
    }
}
