//! Counts effects apart from the answers under test: a request for a number or a list, or a command.
//!
//! What does not belong here: ids in answers (`fact.rs`).

use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::time::timeout;

use crate::address::Address;
use crate::case::Loss;
use crate::target::{Counter, Target};
use crate::wire::{Outgoing, Wire};

/// How long a command may take.
const COMMAND_WITHIN: Duration = Duration::from_secs(30);

/// The number of effects as of now. The text of the error says why there is no number.
pub(crate) async fn count(counter: &Counter, target: &Target, wire: &Wire) -> Result<u64, String> {
    match counter {
        Counter::Url { address, pointer } => by_request(address, pointer, target, wire).await,
        Counter::Command(command) => by_command(command).await,
    }
}

async fn by_request(address: &Address, pointer: &str, target: &Target, wire: &Wire) -> Result<u64, String> {
    let mut head = format!("GET {} HTTP/1.1\r\nhost: {}\r\naccept: */*\r\n", address.path, address.authority);
    // What counts may be somebody else's host, and a credential is for one.
    let credential = target.credential.iter().filter(|_| address.host == target.address.host);
    for (name, value) in target.headers.iter().chain(credential) {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("connection: close\r\n\r\n");
    let outgoing = Outgoing { head: head.into_bytes(), body: Vec::new(), lose: Loss::Nothing };
    let (carried, _) = wire.carry(address, &outgoing, None, None).await;
    let answer = match (carried.answer, carried.fault) {
        (Some(answer), _) if answer.is_success() => answer,
        (Some(answer), _) => return Err(format!("the count was answered with {}", answer.status)),
        (None, fault) => return Err(format!("the count was not answered: {}", fault.unwrap_or_default())),
    };
    let body: serde_json::Value = match serde_json::from_str(&answer.body) {
        Ok(body) => body,
        Err(_) => return Err("the count's answer is not JSON".to_owned()),
    };
    match body.pointer(pointer) {
        Some(serde_json::Value::Array(elements)) => u64::try_from(elements.len()).map_err(|error| error.to_string()),
        Some(value) => value.as_u64().ok_or_else(|| format!("{pointer:?} of the count is neither a number nor a list")),
        None => Err(format!("the count's answer has no {pointer:?}; --count or --requests says where it stands")),
    }
}

async fn by_command(command: &str) -> Result<u64, String> {
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let output = match timeout(COMMAND_WITHIN, shell.output()).await {
        Ok(Ok(output)) if output.status.success() => output.stdout,
        Ok(Ok(output)) => return Err(format!("the counting command ended with {}", output.status)),
        Ok(Err(error)) => return Err(format!("the counting command cannot run: {error}")),
        Err(_) => return Err(format!("the counting command took longer than {} s", COMMAND_WITHIN.as_secs())),
    };
    let text = String::from_utf8_lossy(&output).trim().to_owned();
    text.parse().map_err(|_| "the counting command printed no number".to_owned())
}
