//! Why a request of a case cannot be made: something was not given, or the question does not exist for this target.
//!
//! What does not belong here: what the target answers.

/// Why a request cannot be made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Lack {
    /// What it needs was not given; the text names the setting.
    Missing(String),
    /// The question does not exist: for this kind of body, this place of the key, this protocol.
    Void(String),
}

impl Lack {
    pub(crate) fn void(why: &str) -> Self {
        Self::Void(why.to_owned())
    }

    /// The reason in words.
    pub(crate) fn why(self) -> String {
        match self {
            Self::Missing(why) | Self::Void(why) => why,
        }
    }
}

impl From<&str> for Lack {
    fn from(why: &str) -> Self {
        Self::Missing(why.to_owned())
    }
}

impl From<String> for Lack {
    fn from(why: String) -> Self {
        Self::Missing(why)
    }
}
