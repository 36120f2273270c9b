//! The power goes while a process works: what it was answered is there afterwards.
//!
//! A process runs under `strace`; its writes and syncs are then replayed on a disk that keeps only what was synced, and
//! at every sync and every answer the power is cut: once with nothing unsynced kept, and again with a part of it. What
//! does not belong here: processes that are killed while the machine goes on (`crash`).

mod disk;
pub(crate) mod intents;
pub(crate) mod raw;
pub(crate) mod store;
mod trace;

use std::{fs, path::Path};

use tempfile::TempDir;

use self::{
    disk::{Disk, Image},
    trace::Event,
};
use crate::crash::process;

/// What a process did to the files of its directory.
struct Recorded {
    before: Image,
    events: Vec<Event>,
}

/// Lets a process work in `role` under `strace`, in a directory that `born` made.
fn run(role: &str, born: impl FnOnce(&Path)) -> Recorded {
    let home = tempfile::tempdir().expect("there is room for temporary files");
    let directory = home.path().canonicalize().expect("it is there").join("files");
    fs::create_dir(&directory).expect("it can be made");
    born(&directory);
    let before = read(&directory);
    let log = home.path().join("trace");
    let log = log.to_str().expect("temporary paths are text");
    let calls = format!("trace={}", trace::CALLS.replace(' ', ""));
    let tracer = ["strace", "-f", "--seccomp-bpf", "-y", "-xx", "-s", "100000000", "-e", &calls, "-o", log];
    let child = process::command(role, &directory, &tracer).spawn();
    process::end(child.expect("strace is installed, as ./test does")).well();
    let text = fs::read_to_string(log).expect("strace wrote its log");
    let directory = directory.to_str().expect("temporary paths are text");
    Recorded { before, events: trace::events(&text, directory) }
}

impl Recorded {
    /// Cuts the power before the first event, at every answer, and around every sync that returned.
    fn cuts(&self, mut cut: impl FnMut(&Disk, &Event)) {
        let mut disk = Disk::new(&self.before);
        for event in &self.events {
            match event {
                Event::Said { .. } | Event::SyncBegun { .. } => cut(&disk, event),
                Event::SyncDone { .. } => {
                    cut(&disk, event);
                    disk.apply(event);
                    cut(&disk, event);
                    continue;
                }
                Event::Made { .. }
                | Event::Written { .. }
                | Event::Cut { .. }
                | Event::Unlinked { .. }
                | Event::Renamed { .. } => {}
            }
            disk.apply(event);
        }
    }
}

/// The files of a directory. What is shared memory, and made anew by the first who opens, is left out.
fn read(directory: &Path) -> Image {
    let entries = fs::read_dir(directory).expect("it is there").map(|entry| entry.expect("it can be read"));
    let read = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().expect("our names are text");
        (name, fs::read(entry.path()).expect("it can be read"))
    };
    entries.map(read).filter(|(name, _)| !name.ends_with("-shm")).collect()
}

/// A directory with the files of an image: in memory where there is such a place, because thousands are looked at.
fn written(image: &Image) -> TempDir {
    let memory = Path::new("/dev/shm");
    let directory = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    let directory = directory.expect("there is room for temporary files");
    for (name, bytes) in image.iter().filter(|(name, _)| !name.ends_with("-shm")) {
        fs::write(directory.path().join(name), bytes).expect("it can be written");
    }
    directory
}
