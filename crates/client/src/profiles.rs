//! The contracts of providers: those that are built in, and files of the user's own.
//! What a contract means for an answer belongs to `core::profile`.

mod answer;
mod reader;
mod sheet;

use std::sync::LazyLock;

use counterfoil_core::complaint::Pad;
pub use counterfoil_core::complaint::{Complaint, Complaints};
use counterfoil_core::profile::Profile;
use toml::Table;

use self::reader::Section;

/// The largest file that is read, in bytes.
pub const FILE_BYTES_MAX: usize = 256 << 10;

/// The built-in files, in the order of their ids.
const FILES: [(&str, &str); 15] = [
    ("adyen", include_str!("../profiles/adyen.toml")),
    ("aws-ec2", include_str!("../profiles/aws-ec2.toml")),
    ("checkout", include_str!("../profiles/checkout.toml")),
    ("counterfoil", include_str!("../profiles/counterfoil.toml")),
    ("gocardless", include_str!("../profiles/gocardless.toml")),
    ("ietf", include_str!("../profiles/ietf.toml")),
    ("increase", include_str!("../profiles/increase.toml")),
    ("modern-treasury", include_str!("../profiles/modern-treasury.toml")),
    ("mollie", include_str!("../profiles/mollie.toml")),
    ("oasis", include_str!("../profiles/oasis.toml")),
    ("paypal-orders", include_str!("../profiles/paypal-orders.toml")),
    ("resend", include_str!("../profiles/resend.toml")),
    ("square-payments", include_str!("../profiles/square-payments.toml")),
    ("stripe-v1", include_str!("../profiles/stripe-v1.toml")),
    ("stripe-v2", include_str!("../profiles/stripe-v2.toml")),
];

/// The built-in profiles, in the order of their ids.
#[must_use]
pub fn all() -> &'static [Profile] {
    // A test reads every file; one that could not be read would be missing here.
    static ALL: LazyLock<Vec<Profile>> =
        LazyLock::new(|| FILES.iter().filter_map(|(_, text)| parse(text).ok()).collect());
    &ALL
}

/// The built-in profile of that id.
#[must_use]
pub fn builtin(id: &str) -> Option<&'static Profile> {
    all().iter().find(|profile| profile.id == id)
}

/// The text of a built-in file, for a person who wants one of their own to begin with.
#[must_use]
pub fn text(id: &str) -> Option<&'static str> {
    FILES.iter().find(|(name, _)| *name == id).map(|(_, text)| *text)
}

/// A host as the id of a profile that is made for it.
#[must_use]
pub fn id_of(host: &str) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' };
    host.chars().take(64).map(plain).collect()
}

/// Reads a profile file. Nothing in it is passed over: an unknown setting is a fault. A contract sheet of `counterfoil
/// probe` is read as the profile that follows from it.
///
/// # Errors
/// All that is wrong at once, each with its path and what would be accepted.
pub fn parse(text: &str) -> Result<Profile, Complaints> {
    let pad = Pad::about("the profile");
    if text.len() > FILE_BYTES_MAX {
        pad.add("", format!("{} bytes", text.len()), "a file of at most 256 KiB");
        return pad.judge(None);
    }
    let table: Table = match text.parse() {
        Ok(table) => table,
        Err(error) => {
            let error: toml::de::Error = error;
            pad.add("", error.message().to_owned(), "TOML 1.1");
            return pad.judge(None);
        }
    };
    let table = if sheet::is(&table) {
        match sheet::profile(&table, &pad) {
            Some(profile) => profile,
            None => return pad.judge(None),
        }
    } else {
        table
    };
    let profile = reader::profile(&Section::root(&table, &pad));
    pad.judge(profile)
}
