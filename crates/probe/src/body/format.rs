//! The kinds of bodies that can be changed: JSON, and pairs as a form or as parts.
//!
//! What does not belong here: the changes themselves (`body.rs` for JSON, `pairs.rs` for the others).

use super::pairs::Pairs;
use super::{Hints, changed, with_member};
use crate::case::Body;

/// How a body is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Format {
    Json,
    Form,
    Multipart,
}

/// The marks between the parts. They stay the same, because a retry has the same bytes.
const BOUNDARY: &str = "counterfoil-probe-boundary";
/// The marks where a case wants others.
const OTHER_BOUNDARY: &str = "another-counterfoil-probe-boundary";

impl Format {
    /// What a media type asks for; JSON where it is neither a form nor parts.
    pub(crate) fn of(content_type: &str) -> Self {
        let kind = content_type.split(';').next().unwrap_or_default().trim();
        match kind.to_ascii_lowercase().as_str() {
            "application/x-www-form-urlencoded" => Self::Form,
            "multipart/form-data" => Self::Multipart,
            _ => Self::Json,
        }
    }

    /// The body where none was given.
    pub(crate) const fn empty(self) -> &'static str {
        match self {
            Self::Json => "{}",
            Self::Form | Self::Multipart => "",
        }
    }

    /// The body after a change, with the key as a member more where it travels there. The text of the error says what
    /// is missing for it.
    pub(crate) fn body(
        self,
        base: &[u8],
        change: Body,
        hints: &Hints<'_>,
        key: Option<(&str, &str)>,
    ) -> Result<Vec<u8>, String> {
        match (self, key) {
            (Self::Json, None) => changed(base, change, hints),
            (Self::Json, Some((name, key))) => with_member(&changed(base, change, hints)?, name, key),
            (Self::Form | Self::Multipart, key) => {
                let mut pairs = Pairs::read(base).changed(self, change, hints)?;
                if let Some((name, key)) = key {
                    pairs.add(name, key);
                }
                Ok(match self {
                    Self::Multipart => pairs.parts(boundary(change)),
                    Self::Json | Self::Form => pairs.form(),
                })
            }
        }
    }

    /// The content type that goes with a change.
    pub(crate) fn content_type(self, told: &str, change: Body, charset: bool) -> Result<String, String> {
        let mut text = told.to_owned();
        if self == Self::Multipart {
            text.push_str(&format!("; boundary={}", boundary(change)));
        }
        if charset {
            if told.to_ascii_lowercase().contains("charset=") {
                return Err("the content type names a character set already (--content-type)".to_owned());
            }
            text.push_str("; charset=utf-8");
        }
        Ok(text)
    }
}

fn boundary(change: Body) -> &'static str {
    if change == Body::NewBoundary { OTHER_BOUNDARY } else { BOUNDARY }
}
