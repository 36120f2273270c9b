//! What `profile` is told. How a profile file is read belongs to the client.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Subcommand, Debug)]
pub(crate) enum Profile {
    /// Lists the built-in profiles.
    List(ProfileList),
    /// Prints a built-in profile, to begin one of your own with.
    Show {
        /// Its id.
        id: String,
    },
    /// Tells all that is wrong with a profile file, or that nothing is.
    Check {
        /// The file.
        file: PathBuf,
    },
    /// Reads what a service publishes in /.well-known/idempotency, and prints a profile.
    Fetch(ProfileFetch),
}

#[derive(Args, Debug)]
pub(crate) struct ProfileList {
    /// Print one JSON object a line to standard output.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct ProfileFetch {
    /// The service, such as https://api.example.
    pub(crate) url: String,
    /// Only what is promised of this operation; otherwise the least that is promised of any.
    #[arg(long, value_name = "NAME")]
    pub(crate) operation: Option<String>,
    /// The id of the profile [default: the service's host].
    #[arg(long, value_name = "ID")]
    pub(crate) id: Option<String>,
}
