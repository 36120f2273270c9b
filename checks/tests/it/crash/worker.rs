//! The process that crashes: a test that does nothing, unless it was started in a role.
//!
//! What does not belong here: what must hold after the crash.

use std::{
    io::BufRead,
    path::Path,
    sync::atomic::{AtomicU32, Ordering},
};

use counterfoil_store::{Gate, points};

use super::{
    action::{self, Flow, Told},
    load, owner,
    process::{self, Told as Role, say},
};

#[test]
fn in_its_role() {
    let Some(role) = process::told() else { return };
    process::bound();
    let Role { words, directory } = role;
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["action", flow, pass] => {
            on_runtime(act(&directory, Flow::named(flow), "the-key", || {
                kill_at(number(pass));
                points::set_hook(told_points);
            }));
        }
        ["owned", step] => {
            kill_at(number(step));
            action::owned(&action::open(&directory), &directory, "the-key", passed);
        }
        ["owner", flow, key] => {
            let flow = Flow::named(flow);
            let told = on_runtime(act(&directory, flow, key, || points::set_hook(stand_still)));
            say(&format!("ended as {}", owner::words(&told)));
        }
        ["restart", pass] => {
            kill_at(number(pass));
            points::set_hook(told_points);
            drop(action::open(&directory));
        }
        ["load", seed, pass] => {
            kill_at(number(pass));
            points::set_hook(|_| passed());
            on_runtime(load::work(&directory, u64::from(number(seed))));
        }
        ["power", seed] => on_runtime(crate::powerloss::store::work(&directory, u64::from(number(seed)))),
        ["power-new", seed] => on_runtime(crate::powerloss::store::work_anew(&directory, u64::from(number(seed)))),
        ["send", point, ref arguments @ ..] => {
            kill_at_point(point);
            let arguments = ["counterfoil", "send"].iter().chain(arguments).map(Into::into);
            say(&format!("exit {}", counterfoil_cli::run(arguments)));
        }
        ["power-intents"] => on_runtime(crate::powerloss::intents::work(&directory)),
        ["raw", synchronous] => crate::powerloss::raw::work(&directory, synchronous),
        _ => panic!("nobody knows the role {words:?}"),
    }
}

fn number(word: &str) -> u32 {
    word.parse().expect("it is a number")
}

fn on_runtime<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime starts").block_on(work)
}

/// One action on a store that is open before `watched` sets its hook.
async fn act(directory: &Path, flow: Flow, key: &str, watched: impl FnOnce()) -> Told {
    let store = action::open(directory);
    let gate = Gate::new(store.clone()).expect("a gate opens");
    watched();
    match flow {
        Flow::Coupled => action::coupled(&store, key).await,
        Flow::Owned => load::owned(&store, directory, key).await,
        Flow::Complete | Flow::Release | Flow::Doubt => action::elsewhere(&gate, directory, flow, key, || {}).await,
    }
}

/// How many passes are left until this process dies; 0: none is counted.
static LEFT: AtomicU32 = AtomicU32::new(0);

fn kill_at(pass: u32) {
    LEFT.store(pass, Ordering::SeqCst);
}

fn told_points(point: &'static str) {
    say(&format!("passed {point}"));
    passed();
}

fn passed() {
    let left = LEFT.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
    if left == Ok(1) {
        die();
    }
}

/// Dies at the first pass of this point; `-`: at none.
fn kill_at_point(point: &str) {
    let point = point.to_owned();
    points::set_hook(move |passed| {
        if passed == point {
            die();
        }
    });
}

fn die() -> ! {
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    loop {
        std::thread::park();
    }
}

/// Stands still before the end is written, until a line comes.
fn stand_still(point: &'static str) {
    if ["gate.complete.before-write", "gate.release.before-write", "gate.doubt.before-write"].contains(&point) {
        say("stands still");
        let mut line = String::new();
        std::io::stdin().lock().read_line(&mut line).expect("somebody speaks");
    }
}
