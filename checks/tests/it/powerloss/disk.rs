//! A disk that keeps only what was synced: replays events, and shows what a loss of power would leave.
//!
//! The rules are those of POSIX at their strictest. Bytes are kept once a sync of their file that began after them has
//! returned; a name is kept, or gone, once a sync of the directory has returned, and a sync of the file alone does not
//! keep its name. Everything else may be there or not, in any order, in sectors of 512 bytes. What does not belong
//! here: what the files mean.

use std::collections::{BTreeMap, HashMap};

use super::trace::Event;

const SECTOR: usize = 512;

/// What is found after the power is back: names and bytes.
pub(super) type Image = BTreeMap<String, Vec<u8>>;

#[derive(Clone)]
enum Change {
    Bytes { at: usize, bytes: Vec<u8> },
    Length(usize),
}

#[derive(Default)]
struct File {
    kept: Vec<u8>,
    length: usize,
    pending: Vec<(u64, Change)>,
}

enum Move {
    Linked { name: String, file: usize },
    Unlinked { name: String },
    Renamed { from: String, to: String, file: usize },
}

pub(super) struct Disk {
    files: Vec<File>,
    names: BTreeMap<String, usize>,
    kept_names: BTreeMap<String, usize>,
    moves: Vec<(u64, Move)>,
    /// Syncs that have begun: the file, or the directory, and the first change that they do not cover.
    syncing: HashMap<u32, (Option<usize>, u64)>,
    clock: u64,
}

impl Disk {
    /// A disk that has kept all of `image`.
    pub(super) fn new(image: &Image) -> Self {
        let files = image.values().map(|bytes| File { kept: bytes.clone(), length: bytes.len(), pending: Vec::new() });
        let names: BTreeMap<String, usize> = image.keys().cloned().zip(0..).collect();
        Self {
            files: files.collect(),
            kept_names: names.clone(),
            names,
            moves: Vec::new(),
            syncing: HashMap::new(),
            clock: 0,
        }
    }

    /// Lets one event happen.
    pub(super) fn apply(&mut self, event: &Event) {
        self.clock += 1;
        match event {
            Event::Made { name } => self.make(name),
            Event::Written { name, at, bytes } => {
                let at = at.unwrap_or(self.file(name).length);
                self.change(name, at + bytes.len(), Change::Bytes { at, bytes: bytes.clone() });
            }
            Event::Cut { name, length } => {
                self.file(name).length = *length;
                self.change(name, *length, Change::Length(*length));
            }
            Event::SyncBegun { thread, name } => {
                let file = name.as_ref().map(|name| self.names[name]);
                self.syncing.insert(*thread, (file, self.clock));
            }
            Event::SyncDone { thread } => self.sync(*thread),
            Event::Unlinked { name } => {
                self.names.remove(name);
                self.moves.push((self.clock, Move::Unlinked { name: name.clone() }));
            }
            Event::Renamed { from, to } => {
                let file = self.names.remove(from).expect("what is renamed is there");
                self.names.insert(to.clone(), file);
                self.moves.push((self.clock, Move::Renamed { from: from.clone(), to: to.clone(), file }));
            }
            Event::Said { .. } => {}
        }
    }

    fn make(&mut self, name: &str) {
        if self.names.contains_key(name) {
            return;
        }
        let file = self.files.len();
        self.files.push(File::default());
        self.names.insert(name.to_owned(), file);
        self.moves.push((self.clock, Move::Linked { name: name.to_owned(), file }));
    }

    fn file(&mut self, name: &str) -> &mut File {
        &mut self.files[self.names[name]]
    }

    fn change(&mut self, name: &str, end: usize, change: Change) {
        let clock = self.clock;
        let file = self.file(name);
        file.length = file.length.max(end);
        file.pending.push((clock, change));
    }

    fn sync(&mut self, thread: u32) {
        let (file, until) = self.syncing.remove(&thread).expect("a sync that returns has begun");
        match file {
            Some(file) => {
                let File { kept, pending, .. } = &mut self.files[file];
                for (_, change) in pending.extract_if(.., |(at, _)| *at < until) {
                    change.keep(kept);
                }
            }
            None => {
                for (_, change) in self.moves.extract_if(.., |(at, _)| *at < until) {
                    change.keep(&mut self.kept_names);
                }
            }
        }
    }

    /// What is left where nothing unsynced came through.
    pub(super) fn strict(&self) -> Image {
        let found = |(name, file): (&String, &usize)| (name.clone(), self.files[*file].kept.clone());
        self.kept_names.iter().map(found).collect()
    }

    /// What is left where some of the unsynced changes came through, whole or in sectors.
    pub(super) fn lucky(&self, random: &mut fastrand::Rng) -> Image {
        let mut names = self.kept_names.clone();
        for (_, change) in self.moves.iter().filter(|_| random.bool()) {
            change.keep(&mut names);
        }
        let mut image = Image::new();
        for (name, file) in names {
            let file = &self.files[file];
            let mut bytes = file.kept.clone();
            for (_, change) in &file.pending {
                match random.u8(..3) {
                    0 => {}
                    1 => change.keep(&mut bytes),
                    _ => change.keep_torn(&mut bytes, random),
                }
            }
            image.insert(name, bytes);
        }
        image
    }
}

impl Move {
    fn keep(&self, names: &mut BTreeMap<String, usize>) {
        match self {
            Self::Linked { name, file } => {
                names.insert(name.clone(), *file);
            }
            Self::Unlinked { name } => {
                names.remove(name);
            }
            Self::Renamed { from, to, file } => {
                names.remove(from);
                names.insert(to.clone(), *file);
            }
        }
    }
}

impl Change {
    fn keep(&self, kept: &mut Vec<u8>) {
        match self {
            Self::Bytes { at, bytes } => put(kept, *at, bytes),
            Self::Length(length) => kept.resize(*length, 0),
        }
    }

    /// Each sector comes through or does not.
    fn keep_torn(&self, kept: &mut Vec<u8>, random: &mut fastrand::Rng) {
        let Self::Bytes { at, bytes } = self else { return };
        let (mut from, end) = (*at, at + bytes.len());
        while from < end {
            let next = end.min((from / SECTOR + 1) * SECTOR);
            if random.bool() {
                put(kept, from, &bytes[from - at..next - at]);
            }
            from = next;
        }
    }
}

fn put(kept: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    kept.resize(kept.len().max(at + bytes.len()), 0);
    kept[at..at + bytes.len()].copy_from_slice(bytes);
}

#[test]
fn only_what_was_synced_is_kept() {
    let name = |name: &str| name.to_owned();
    let written = |at, bytes: &str| Event::Written { name: name("f"), at: Some(at), bytes: bytes.into() };
    let begun = |thread, of: Option<&str>| Event::SyncBegun { thread, name: of.map(name) };
    let done = |thread| Event::SyncDone { thread };
    let mut disk = Disk::new(&Image::from([(name("f"), b"old".to_vec())]));
    let mut check = |events: &[Event], wanted: &[(&str, &str)]| {
        events.iter().for_each(|event| disk.apply(event));
        let wanted: Image =
            wanted.iter().map(|(name, bytes)| ((*name).to_owned(), bytes.as_bytes().to_vec())).collect();
        assert_eq!(disk.strict(), wanted, "after {events:?}");
    };
    check(&[written(0, "new"), begun(1, Some("f")), written(3, "er")], &[("f", "old")]);
    check(&[done(1)], &[("f", "new")]);
    check(&[begun(2, Some("f")), done(2), Event::Cut { name: name("f"), length: 2 }], &[("f", "newer")]);
    check(&[begun(1, Some("f")), done(1)], &[("f", "ne")]);
    let logged = Event::Written { name: name("log"), at: None, bytes: b"x".to_vec() };
    check(&[Event::Made { name: name("log") }, logged.clone(), begun(1, Some("log")), done(1)], &[("f", "ne")]);
    check(&[begun(1, None), done(1), logged, begun(1, Some("log")), done(1)], &[("f", "ne"), ("log", "xx")]);
    check(&[Event::Renamed { from: name("log"), to: name("g") }], &[("f", "ne"), ("log", "xx")]);
    check(&[Event::Unlinked { name: name("f") }, begun(1, None), done(1)], &[("g", "xx")]);
}

#[test]
fn unsynced_sectors_come_through_in_any_order() {
    let mut disk = Disk::new(&Image::from([("f".to_owned(), vec![b'0'; 3 * SECTOR])]));
    for byte in [b'1', b'2'] {
        disk.apply(&Event::Written { name: "f".to_owned(), at: Some(0), bytes: vec![byte; 3 * SECTOR] });
    }
    let mut random = fastrand::Rng::with_seed(1);
    let seen: std::collections::BTreeSet<Vec<u8>> = std::iter::repeat_with(|| disk.lucky(&mut random))
        .take(5000)
        .map(|image| image["f"].chunks(SECTOR).map(|sector| sector[0]).collect())
        .collect();
    assert_eq!(seen.len(), 27, "each of three sectors is old, new, or newer");
}
