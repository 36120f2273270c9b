//! The arguments of `probe`, and how they become settings. Their meaning belongs to `counterfoil_probe`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Subcommand, ValueEnum};
use counterfoil_probe::{Contract, FailOn, Hook, Place, Settings};

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
    /// A body that the target accepts: JSON, or NAME=VALUE&NAME=VALUE for the two types of pairs; {{fresh}} in it is another
    /// text for each action, for what must be unique [default: {}].
    #[arg(long, value_name = "TEXT|@FILE")]
    pub(crate) body: Option<String>,
    /// Its media type; application/x-www-form-urlencoded and multipart/form-data are of pairs [default:
    /// application/json].
    #[arg(long, value_name = "TYPE")]
    pub(crate) content_type: Option<String>,
    /// The value that is changed to make another request, such as /quantity; of a pair its name [default: the first].
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
    /// What tells the number of requests that reached the operation: more than were sent is somebody's repetition.
    #[arg(long, value_name = "URL")]
    pub(crate) requests_url: Option<String>,
    /// Where in its answer the number, or the list, stands [default: the whole answer].
    #[arg(long, value_name = "POINTER", requires = "requests_url")]
    pub(crate) requests: Option<String>,
    /// A shell command that prints that number.
    #[arg(long, value_name = "COMMAND", conflicts_with = "requests_url")]
    pub(crate) requests_command: Option<String>,
    /// The header that says who is calling, as 'Name: value' or 'Name: env:VARIABLE'. It is in no report.
    #[arg(long, value_name = "HEADER")]
    pub(crate) credential: Option<String>,
    /// Another header, as 'Name: value'.
    #[arg(long, value_name = "HEADER")]
    pub(crate) header: Vec<String>,
    /// Where the key stands: header:NAME, query:NAME or body:NAME [default: as the contract says].
    #[arg(long, value_name = "PLACE")]
    pub(crate) key: Option<String>,
    /// A further place, as NAME=URL or NAME=METHOD URL; {{key}} and {{id}} in it stand for the key and for the id of what was
    /// made. NAME is other, sibling, method, region, second, upgraded, change, delete, lookup, cancel or description.
    #[arg(long, value_name = "NAME=[METHOD ]URL", value_parser = parse_named::<Place>)]
    pub(crate) also: Vec<(Place, String)>,
    /// A body that the target refuses, written like --body [default: made from --vary].
    #[arg(long, value_name = "TEXT|@FILE")]
    pub(crate) invalid: Option<String>,
    /// A body that the target declines for its own reasons, such as a card without money, written like --body.
    #[arg(long, value_name = "TEXT|@FILE")]
    pub(crate) declined: Option<String>,
    /// A member that may be left out, with its documented default.
    #[arg(long, value_name = "/NAME=VALUE")]
    pub(crate) default_member: Option<String>,
    #[command(flatten)]
    pub(crate) means: Means,
    /// Only cases whose id begins so, or of this row or group, with those that they depend on.
    #[arg(long, value_name = "ID")]
    pub(crate) case: Vec<String>,
    /// Show the cases and end.
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
    /// Speak HTTP/2: by ALPN over TLS, else without asking first.
    #[arg(long)]
    pub(crate) http2: bool,
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

/// What more cases need: hooks into the target, other callers, a window.
#[derive(Args, Debug)]
pub(crate) struct Means {
    /// A shell command that does something to the target. NAME is restart, kill, clock, power-cut, backup, restore, hold,
    /// limit, fail-before, fail-after, store-down or heal; clock moves its clock on by $PROBE_SECONDS, and
    /// $PROBE_SECONDS_TOTAL is how far it is moved in all.
    #[arg(long, value_name = "NAME=COMMAND", value_parser = parse_named::<Hook>)]
    pub(crate) hook: Vec<(Hook, String)>,
    /// For how long the API says that it keeps a key.
    #[arg(long, value_name = "SECONDS")]
    pub(crate) window: Option<u64>,
    /// The credential of another principal, written as --credential is.
    #[arg(long, value_name = "HEADER")]
    pub(crate) second_credential: Option<String>,
    /// Another credential of the same principal, written as --credential is.
    #[arg(long, value_name = "HEADER")]
    pub(crate) same_tenant_credential: Option<String>,
    /// The credential of a principal whose name goes on where that of --credential ends, such as 'Tenant: a:b' beside
    /// 'Tenant: a'.
    #[arg(long, value_name = "HEADER")]
    pub(crate) nested_credential: Option<String>,
    /// The header that names another account of the same principal.
    #[arg(long, value_name = "HEADER")]
    pub(crate) account_header: Option<String>,
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

fn parse_named<T: FromStr<Err = String>>(text: &str) -> Result<(T, String), String> {
    let (name, told) = text.split_once('=').ok_or("accepted: NAME=TEXT")?;
    Ok((name.parse()?, told.to_owned()))
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
            content_type: self.content_type.clone(),
            header: self.header.clone(),
            requests_url: self.requests_url.clone(),
            requests: self.requests.clone(),
            requests_command: self.requests_command.clone(),
            credential: self.credential.clone(),
            vary: self.vary.clone(),
            id: self.id.clone(),
            count_url: self.count_url.clone(),
            count: self.count.clone(),
            count_command: self.count_command.clone(),
            also: self.also.iter().cloned().collect(),
            invalid: self.invalid.clone(),
            declined: self.declined.clone(),
            default_member: self.default_member.clone(),
            key: self.key.clone(),
            case: self.case.clone(),
            i_own_this_api: self.i_own_this_api,
            max_effects: self.max_effects,
            max_requests: self.max_requests,
            max_seconds: self.max_seconds,
            rate: self.rate,
            http2: self.http2,
            ca: self.ca.clone(),
            hook: self.means.hook.iter().cloned().collect(),
            window: self.means.window,
            second_credential: self.means.second_credential.clone(),
            same_tenant_credential: self.means.same_tenant_credential.clone(),
            nested_credential: self.means.nested_credential.clone(),
            account_header: self.means.account_header.clone(),
            ..Settings::default()
        };
        let mut settings = ours.over(below);
        for text in [&mut settings.body, &mut settings.invalid, &mut settings.declined].into_iter().flatten() {
            if let Some(path) = text.strip_prefix('@') {
                *text = super::read(path.as_ref())?;
            }
        }
        Ok(settings)
    }
}
