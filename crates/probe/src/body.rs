//! A body of some kind, and its changes: each kind has those that it can spell.
//!
//! What does not belong here: when which change is sent, which the cases say.

mod fields;
mod form;
mod json;
mod multipart;

use crate::case::Body;
use crate::lack::Lack;

/// What the changes need to know beside the body.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hints<'a> {
    /// The value that is changed and the member that is taken away; the first scalar where nothing is said.
    pub(crate) vary: Option<&'a str>,
    /// The body that the target should refuse.
    pub(crate) invalid: Option<&'a str>,
    /// A member with its documented default, as `/pointer=value`.
    pub(crate) default: Option<&'a str>,
    /// The body of a request that the target declines for reasons of its business.
    pub(crate) declined: Option<&'a str>,
    /// The body that changes what an earlier request made.
    pub(crate) change: Option<&'a str>,
}

/// What a body is written in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Shape {
    /// JSON, or what is taken for it.
    Json,
    /// `application/x-www-form-urlencoded`.
    Form,
    /// `multipart/form-data` with its boundary.
    Multipart(String),
}

/// The boundary of bodies that are put together from `--form`.
const BOUNDARY: &str = "counterfoil-probe-7d29020232d6aa3f";
/// The boundary that another attempt has.
const BOUNDARY_NEXT: &str = "counterfoil-probe-8f3a1c5b09e447d2";

/// A body with its media type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Entity {
    pub(crate) shape: Shape,
    pub(crate) media: String,
    pub(crate) bytes: Vec<u8>,
}

impl Entity {
    /// Puts together what was told: a body as text, or fields of a form as curl takes them, `NAME=VALUE` or `NAME=@FILE`.
    pub(crate) fn of(body: Option<&str>, form: &[String], media: Option<&str>) -> Result<Self, String> {
        if !form.is_empty() {
            if body.is_some() {
                return Err("give a body or fields of a form, not both".to_owned());
            }
            if media.is_some_and(|media| !media.starts_with("multipart/form-data")) {
                return Err("fields of a form are sent as multipart/form-data".to_owned());
            }
            let bytes = multipart::built(form, BOUNDARY)?;
            let media = format!("multipart/form-data; boundary={BOUNDARY}");
            return Ok(Self { shape: Shape::Multipart(BOUNDARY.to_owned()), media, bytes });
        }
        let text = body.unwrap_or("{}");
        let media = match media {
            Some(media) => media.to_owned(),
            None if text.starts_with("--") => "multipart/form-data".to_owned(),
            None if form::looks_so(text) => "application/x-www-form-urlencoded".to_owned(),
            None => "application/json".to_owned(),
        };
        let essence = media.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let (shape, media) = match essence.as_str() {
            "application/x-www-form-urlencoded" => (Shape::Form, media),
            "multipart/form-data" => {
                let told = multipart::boundary(&media);
                let boundary =
                    told.clone().or_else(|| multipart::first_line(text)).ok_or("its boundary is not told")?;
                let media = if told.is_some() { media } else { format!("{media}; boundary={boundary}") };
                (Shape::Multipart(boundary), media)
            }
            _ => (Shape::Json, media),
        };
        Ok(Self { shape, media, bytes: text.as_bytes().to_vec() })
    }

    /// The body after a change.
    pub(crate) fn changed(&self, change: Body, hints: &Hints<'_>) -> Result<Self, Lack> {
        let told = |text: &str| Ok(Self { bytes: text.as_bytes().to_vec(), ..self.clone() });
        match (change, hints) {
            (Body::Base, _) => return Ok(self.clone()),
            (Body::Invalid, Hints { invalid: Some(text), .. }) => return told(text),
            (Body::Declined, Hints { declined: Some(text), .. }) => return told(text),
            (Body::Declined, _) => return Err("no body that is declined was given (declined in the file)".into()),
            (Body::Change, Hints { change: Some(text), .. }) => return told(text),
            (Body::Nothing, _) => return told(""),
            _ => {}
        }
        match &self.shape {
            Shape::Json => Ok(Self { bytes: json::changed(&self.bytes, change, hints)?, ..self.clone() }),
            Shape::Form => {
                let fields = form::read(&self.bytes)?.changed(change, hints)?;
                Ok(Self { bytes: form::written(&fields), ..self.clone() })
            }
            Shape::Multipart(boundary) => {
                let fields = multipart::read(&self.bytes, boundary)?;
                if change == Body::NewBoundary {
                    let media = self.media.replace(boundary.as_str(), BOUNDARY_NEXT);
                    let bytes = multipart::written(&fields, BOUNDARY_NEXT);
                    return Ok(Self { shape: Shape::Multipart(BOUNDARY_NEXT.to_owned()), media, bytes });
                }
                if change == Body::Escaped {
                    return Err(Lack::void("a part has no escapes"));
                }
                let bytes = multipart::written(&fields.changed(change, hints)?, boundary);
                Ok(Self { bytes, ..self.clone() })
            }
        }
    }

    /// The body with one more member, for keys that travel in it.
    pub(crate) fn with_member(&self, name: &str, text: &str) -> Result<Self, Lack> {
        let bytes = match &self.shape {
            Shape::Json => json::with_member(&self.bytes, name, text)?,
            Shape::Form => form::written(&form::read(&self.bytes)?.with(name, text)),
            Shape::Multipart(boundary) => {
                multipart::written(&multipart::read(&self.bytes, boundary)?.with(name, text), boundary)
            }
        };
        Ok(Self { bytes, ..self.clone() })
    }
}

#[cfg(test)]
mod tests;
