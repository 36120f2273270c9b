//! Commands of the settings that do something to the target: end it, move its clock, put it into a state.
//!
//! What does not belong here: when they run (the cases), and commands that count (`observer.rs`).

use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::time::timeout;

use crate::case::Hook;
use crate::lack::Lack;
use crate::settings::Settings;

/// How long a command may take.
const COMMAND_WITHIN: Duration = Duration::from_mins(2);

/// The commands that were given.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hooks {
    restart: Option<String>,
    kill: Option<String>,
    clock: Option<String>,
    state: Option<String>,
    /// Seconds for which a key is kept.
    window: Option<u64>,
}

/// A command with its argument.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Call {
    command: String,
    argument: String,
}

impl Hooks {
    pub(crate) fn of(settings: &Settings) -> Self {
        Self {
            restart: settings.restart_command.clone(),
            kill: settings.kill_command.clone(),
            clock: settings.clock_command.clone(),
            state: settings.state_command.clone(),
            window: settings.window,
        }
    }

    /// The command of a step, or the flag that would give it.
    pub(crate) fn call(&self, hook: Hook) -> Result<Call, Lack> {
        let (command, argument, why) = match hook {
            Hook::Restart => (&self.restart, String::new(), "nothing restarts the target (--restart-command)"),
            Hook::Kill => (&self.kill, String::new(), "nothing kills the target (--kill-command)"),
            Hook::State { to } => {
                (&self.state, to.name().to_owned(), "nothing puts the target into a state (--state-command)")
            }
            Hook::Clock { seconds, percent } => {
                let part = match percent {
                    None => 0,
                    Some(percent) => {
                        let window = self.window.ok_or("the time for which keys are kept was not told (--window)")?;
                        window.saturating_mul(percent).div_ceil(100)
                    }
                };
                let forward = part.saturating_add(seconds.unwrap_or_default());
                (&self.clock, forward.to_string(), "nothing moves the target's clock (--clock-command)")
            }
        };
        let command = command.clone().ok_or(why)?;
        Ok(Call { command, argument })
    }
}

/// Runs a command and awaits its end. The text of the error says what went wrong.
pub(crate) async fn run(call: &Call) -> Result<(), String> {
    let mut shell = Command::new("sh");
    // Its output is nobody's: what it starts may hold a pipe open for ever.
    shell.args(["-c", &call.command, "sh", &call.argument]).env("COUNTERFOIL_PROBE_HOOK", &call.argument);
    shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let told = format!("{} {}", call.command, call.argument);
    match timeout(COMMAND_WITHIN, shell.status()).await {
        Ok(Ok(status)) if status.success() => Ok(()),
        Ok(Ok(status)) => Err(format!("the command {:?} ended with {status}", told.trim_end())),
        Ok(Err(error)) => Err(format!("the command {:?} cannot run: {error}", told.trim_end())),
        Err(_) => Err(format!("the command {:?} took longer than {} s", told.trim_end(), COMMAND_WITHIN.as_secs())),
    }
}

#[cfg(test)]
mod tests;
