//! The arguments of `probe`, and how they become settings. Their meaning belongs to `counterfoil_probe`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use counterfoil_probe::{Contract, FailOn, Settings};

use crate::error::CliError;

/// What `probe` is told.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Probe {
    #[command(subcommand)]
    pub(crate) other: Option<Other>,
    #[command(flatten)]
    pub(crate) ask: Box<Ask>,
}

/// What is done with results of earlier runs.
#[derive(Subcommand, Debug)]
pub(crate) enum Other {
    /// Compares two contract sheets; exit code 1 where the promise changed.
    Diff(Diff),
    /// Writes one page for several results, side by side.
    Page(Page),
}

#[derive(Args, Debug)]
pub(crate) struct Diff {
    /// The sheet from before.
    pub(crate) before: PathBuf,
    /// The sheet of now.
    pub(crate) after: PathBuf,
}

#[derive(Args, Debug)]
pub(crate) struct Page {
    /// Where the page is written; - for standard output.
    pub(crate) page: PathBuf,
    /// Results, written by --report json=FILE.
    #[arg(required = true)]
    pub(crate) results: Vec<PathBuf>,
}

/// What is asked of whom.
#[derive(Args, Debug)]
pub(crate) struct Ask {
    /// The operation, such as http://127.0.0.1:9000/orders.
    pub(crate) url: Option<String>,
    /// A TOML file with the same names, without dashes in front; flags win over it.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// What the target is held against [default: ietf].
    #[arg(long, value_name = "NAME")]
    pub(crate) contract: Option<ContractName>,
    /// The method [default: POST].
    #[arg(long)]
    pub(crate) method: Option<String>,
    /// A body that the target accepts, JSON or a=1&b=2: its text, or @FILE [default: {}].
    #[arg(long, value_name = "TEXT|@FILE")]
    pub(crate) body: Option<String>,
    /// Instead of a body a field of a multipart form, as curl takes it: NAME=VALUE or NAME=@FILE.
    #[arg(long, value_name = "FIELD", conflicts_with = "body")]
    pub(crate) form: Vec<String>,
    /// Its media type [default: JSON, or the form that it looks like].
    #[arg(long, value_name = "TYPE")]
    pub(crate) content_type: Option<String>,
    /// The value, or the field, that is changed to make another request, such as /quantity [default: the first].
    #[arg(long, value_name = "POINTER")]
    pub(crate) vary: Option<String>,
    /// Where the id of the result stands: /id in the body, or header:NAME.
    #[arg(long, value_name = "POINTER")]
    pub(crate) id: Option<String>,
    /// What tells the number of effects.
    #[arg(long, value_name = "URL")]
    pub(crate) count_url: Option<String>,
    /// Where in its answer the number, or the list, stands [default: the whole answer].
    #[arg(long, value_name = "POINTER", requires = "count_url")]
    pub(crate) count: Option<String>,
    /// A shell command that prints the number of effects.
    #[arg(long, value_name = "COMMAND", conflicts_with = "count_url")]
    pub(crate) count_command: Option<String>,
    /// What tells the number of requests that reached the target; more than were sent were sent again on the way.
    #[arg(long, value_name = "URL")]
    pub(crate) requests_url: Option<String>,
    /// Where in its answer the number, or the list, stands [default: the whole answer].
    #[arg(long, value_name = "POINTER", requires = "requests_url")]
    pub(crate) requests: Option<String>,
    /// A shell command that prints the number of requests that reached the target.
    #[arg(long, value_name = "COMMAND", conflicts_with = "requests_url")]
    pub(crate) requests_command: Option<String>,
    /// HTTP/2 for all requests: by ALPN over TLS, by prior knowledge without [default: HTTP/1.1].
    #[arg(long)]
    pub(crate) http2: bool,
    /// The header that says who is calling, as 'Name: value' or 'Name: env:VARIABLE'. It is in no report.
    #[arg(long, value_name = "HEADER")]
    pub(crate) credential: Option<String>,
    /// Another header, as 'Name: value'.
    #[arg(long, value_name = "HEADER")]
    pub(crate) header: Vec<String>,
    /// Where the key stands: header:NAME, query:NAME or body:NAME [default: as the contract says].
    #[arg(long, value_name = "PLACE")]
    pub(crate) key: Option<String>,
    /// Another operation that takes the same body.
    #[arg(long, value_name = "URL")]
    pub(crate) other_url: Option<String>,
    /// The same operation at another instance of the target.
    #[arg(long, value_name = "URL")]
    pub(crate) second_url: Option<String>,
    /// The credential of another caller, written as --credential is.
    #[arg(long, value_name = "HEADER")]
    pub(crate) second_credential: Option<String>,
    /// A shell command that ends the target in order and starts it again.
    #[arg(long, value_name = "COMMAND")]
    pub(crate) restart_command: Option<String>,
    /// A shell command that ends the target with SIGKILL and starts it again.
    #[arg(long, value_name = "COMMAND")]
    pub(crate) kill_command: Option<String>,
    /// A shell command that moves the target's clock forward by $1 seconds.
    #[arg(long, value_name = "COMMAND")]
    pub(crate) clock_command: Option<String>,
    /// A shell command that puts the target into the state $1; the reference has the states.
    #[arg(long, value_name = "COMMAND")]
    pub(crate) state_command: Option<String>,
    /// For how long the target says that it keeps a key.
    #[arg(long, value_name = "SECONDS")]
    pub(crate) window: Option<u64>,
    /// A body that the target refuses: its text, or @FILE [default: made from --vary].
    #[arg(long, value_name = "TEXT|@FILE")]
    pub(crate) invalid: Option<String>,
    /// A member that may be left out, with its documented default.
    #[arg(long, value_name = "/NAME=VALUE")]
    pub(crate) default_member: Option<String>,
    /// Only cases whose id begins so, or of this row or group, with those that they depend on; all for every case
    /// [default: those that need a URL, a body and an id].
    #[arg(long, value_name = "ID")]
    pub(crate) case: Vec<String>,
    /// Show the cases and end; + marks those that only --case asks.
    #[arg(long)]
    pub(crate) list: bool,
    /// Say what would be done, and end.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// The target is not this machine, and I may make effects there.
    #[arg(long)]
    pub(crate) i_own_this_api: bool,
    /// The most effects that are risked [default: 500].
    #[arg(long, value_name = "COUNT")]
    pub(crate) max_effects: Option<u32>,
    /// The most requests [default: 2000].
    #[arg(long, value_name = "COUNT")]
    pub(crate) max_requests: Option<u32>,
    /// No case begins later than so many seconds after the first [default: 600].
    #[arg(long, value_name = "SECONDS")]
    pub(crate) max_seconds: Option<u64>,
    /// The most requests in a second; 0 for no limit [default: 5, and none on this machine].
    #[arg(long, value_name = "COUNT")]
    pub(crate) rate: Option<u32>,
    /// A PEM file with authorities to believe beside the system's.
    #[arg(long, value_name = "FILE")]
    pub(crate) ca: Option<String>,
    /// Which deviations are told by exit code 1.
    #[arg(long, value_name = "SEVERITY", default_value = "any")]
    pub(crate) fail_on: SeverityName,
    /// What is written where: html=FILE, json=FILE, junit=FILE, sheet=FILE, lines=FILE; - for standard output.
    #[arg(long, value_name = "KIND=FILE", value_delimiter = ',', value_parser = parse_report)]
    pub(crate) report: Vec<Report>,
}

/// A contract.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum ContractName {
    /// The draft for the header Idempotency-Key.
    Ietf,
    /// Stripe's API v1.
    StripeV1,
    /// The client token of Amazon EC2.
    Ec2,
}

/// Which deviations count.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum SeverityName {
    /// Effects too many or too few, or somebody else's result.
    Critical,
    /// Also what leaves a caller stuck or misled.
    Major,
    /// All.
    Any,
}

impl SeverityName {
    pub(crate) const fn fail_on(self) -> FailOn {
        match self {
            Self::Critical => FailOn::Critical,
            Self::Major => FailOn::Major,
            Self::Any => FailOn::Any,
        }
    }
}

/// What is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Html,
    Json,
    Junit,
    Sheet,
    Lines,
}

/// What is written, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Report {
    pub(crate) kind: Kind,
    pub(crate) path: PathBuf,
}

fn parse_report(text: &str) -> Result<Report, String> {
    let wrong = "accepted: html=FILE, json=FILE, junit=FILE, sheet=FILE, lines=FILE";
    let (kind, path) = text.split_once('=').filter(|(_, path)| !path.is_empty()).ok_or(wrong)?;
    let kind = match kind {
        "html" => Kind::Html,
        "json" => Kind::Json,
        "junit" => Kind::Junit,
        "sheet" => Kind::Sheet,
        "lines" => Kind::Lines,
        _ => return Err(wrong.to_owned()),
    };
    Ok(Report { kind, path: path.into() })
}

impl Ask {
    /// The settings of the flags, over those of the file.
    pub(crate) fn settings(&self) -> Result<Settings, CliError> {
        let below = match &self.config {
            None => Settings::default(),
            Some(path) => {
                let text = super::read(path)?;
                Settings::parse(&text).map_err(|why| CliError::Usage(format!("{}: {why}", path.display())))?
            }
        };
        let ours = Settings {
            url: self.url.clone(),
            method: self.method.clone(),
            contract: self.contract.map(|contract| match contract {
                ContractName::Ietf => Contract::Ietf,
                ContractName::StripeV1 => Contract::StripeV1,
                ContractName::Ec2 => Contract::Ec2,
            }),
            body: self.body.clone(),
            form: self.form.clone(),
            content_type: self.content_type.clone(),
            header: self.header.clone(),
            credential: self.credential.clone(),
            vary: self.vary.clone(),
            id: self.id.clone(),
            count_url: self.count_url.clone(),
            count: self.count.clone(),
            count_command: self.count_command.clone(),
            requests_url: self.requests_url.clone(),
            requests: self.requests.clone(),
            requests_command: self.requests_command.clone(),
            http2: self.http2,
            other_url: self.other_url.clone(),
            second_url: self.second_url.clone(),
            second_credential: self.second_credential.clone(),
            restart_command: self.restart_command.clone(),
            kill_command: self.kill_command.clone(),
            clock_command: self.clock_command.clone(),
            state_command: self.state_command.clone(),
            window: self.window,
            invalid: self.invalid.clone(),
            default_member: self.default_member.clone(),
            key: self.key.clone(),
            case: self.case.clone(),
            i_own_this_api: self.i_own_this_api,
            max_effects: self.max_effects,
            max_requests: self.max_requests,
            max_seconds: self.max_seconds,
            rate: self.rate,
            ca: self.ca.clone(),
            ..Settings::default()
        };
        let mut settings = ours.over(below);
        for text in [&mut settings.body, &mut settings.invalid].into_iter().flatten() {
            if let Some(path) = text.strip_prefix('@') {
                *text = super::read(path.as_ref())?;
            }
        }
        Ok(settings)
    }
}
