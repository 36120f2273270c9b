//! The changes to a body that a case can ask for.
//!
//! What does not belong here: how they are made (`crate::body`).

use serde::Deserialize;

/// A change to the body.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Body {
    /// The given bytes.
    #[default]
    Base,
    /// One value changed.
    Changed,
    /// One more member.
    Added,
    /// The varied member taken away.
    Removed,
    /// One more member whose value is null.
    NullAdded,
    /// The documented default of a member written out.
    DefaultAdded,
    /// Members of objects in reverse order.
    Reordered,
    /// Elements of arrays in reverse order.
    ArraysReversed,
    /// With line breaks and spaces.
    Pretty,
    /// A whole number written with a fraction of zero.
    NumberDecimal,
    /// A whole number written with an exponent of zero.
    NumberExponent,
    /// A number of 20 digits.
    NumberLong,
    /// The number of 20 digits after that.
    NumberLongNext,
    /// None at all, and no content type.
    Nothing,
    /// What the target declines for its own reasons, such as a card without money.
    Declined,
    /// What the target should refuse.
    Invalid,
    /// One member written twice.
    DuplicateMember,
    /// The varied value inside an array.
    Nested,
    /// The first letter of a text written as an escape.
    Escaped,
    /// A text that ends with an accented letter in one code point.
    Composed,
    /// The same text with the accent as a code point of its own.
    Decomposed,
    /// The same parts between other boundaries.
    NewBoundary,
}
