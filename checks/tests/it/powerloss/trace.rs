//! Reads what `strace` wrote about one process as events on the files of one directory.
//!
//! What does not belong here: what survives a loss of power (`disk.rs`). A call that changes one of our files and is
//! not understood is refused, so that nothing is left out in silence.

use std::collections::HashMap;

/// What `strace` is told to watch: everything that can change a file, its name, or its durability, and the seeks.
pub(super) const CALLS: &str = "open,openat,openat2,creat,close,lseek,write,pwrite64,writev,pwritev,pwritev2,fsync,\
    fdatasync,sync,syncfs,msync,sync_file_range,ftruncate,truncate,fallocate,copy_file_range,sendfile,splice,rename,\
    renameat,renameat2,unlink,unlinkat,link,linkat,symlink,symlinkat,dup,dup2,dup3";

/// One thing that happened, in the order in which it was seen to. Names are relative to the directory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Event {
    /// A file is opened and made where it is not there.
    Made { name: String },
    /// Bytes are written; `at` is `None` where they go to the end.
    Written { name: String, at: Option<usize>, bytes: Vec<u8> },
    /// A file is cut or grown to a length.
    Cut { name: String, length: usize },
    /// A sync begins: of a file, or of the directory itself where there is no name.
    SyncBegun { thread: u32, name: Option<String> },
    /// That thread's sync has returned.
    SyncDone { thread: u32 },
    /// A name is taken away.
    Unlinked { name: String },
    /// A name is moved over another.
    Renamed { from: String, to: String },
    /// The process said a line on its standard output.
    Said { line: String },
}

/// The events that `text` tells about the files directly in `directory`.
pub(super) fn events(text: &str, directory: &str) -> Vec<Event> {
    let mut reader = Reader { directory: format!("{directory}/"), ..Reader::default() };
    text.lines().for_each(|line| reader.line(line));
    reader.events
}

#[derive(Default)]
struct Reader {
    directory: String,
    events: Vec<Event>,
    /// Calls that a thread has entered and not left.
    entered: HashMap<u32, String>,
    /// Where the next write goes; `None`: to the end.
    positions: HashMap<u32, Option<usize>>,
    said: Vec<u8>,
}

impl Reader {
    fn line(&mut self, line: &str) {
        let Some((thread, rest)) = line.split_once(' ') else { return };
        let thread: u32 = thread.parse().expect("a line begins with a thread's id");
        let rest = rest.trim_start();
        if rest.starts_with("+++") || rest.starts_with("---") {
            return;
        }
        if let Some(rest) = rest.strip_prefix("<... ") {
            let (_, tail) = rest.split_once(" resumed>").expect("a resumed call says so");
            let head = self.entered.remove(&thread).expect("a resumed call was entered");
            self.left(thread, &format!("{head}{tail}"));
        } else if let Some(head) = rest.strip_suffix(" <unfinished ...>") {
            self.begun(thread, head);
            self.entered.insert(thread, head.to_owned());
        } else {
            self.begun(thread, rest);
            self.left(thread, rest);
        }
    }

    /// The moment of entry matters where somebody else may act on it before the call returns.
    fn begun(&mut self, thread: u32, call: &str) {
        let (name, arguments) = call.split_once('(').expect("a call has arguments");
        let target = Target::read(arguments);
        if ["fsync", "fdatasync"].contains(&name) && (self.is_directory(&target) || self.ours(&target).is_some()) {
            let name = self.ours(&target);
            self.events.push(Event::SyncBegun { thread, name });
        }
        if name == "write" && target.number == Some(1) {
            self.said.extend(text(arguments.split(", ").nth(1).expect("a write has bytes")));
            while let Some(end) = self.said.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.said.drain(..=end).collect();
                self.events.push(Event::Said { line: String::from_utf8_lossy(&line[..end]).into_owned() });
            }
        }
    }

    fn left(&mut self, thread: u32, call: &str) {
        // Only a call that the end of the process interrupted has no result.
        let Some((call, result)) = call.rsplit_once(" = ") else { return };
        if result.starts_with('-') || result.starts_with('?') {
            return;
        }
        let (name, arguments) = call.trim_end().split_once('(').expect("a call has arguments");
        let arguments: Vec<&str> = arguments.trim_end_matches(')').split(", ").collect();
        let target = Target::read(arguments[0]);
        match name {
            "open" | "openat" | "openat2" | "creat" => self.opened(name, &arguments, &Target::read(result)),
            "fsync" | "fdatasync" if self.is_directory(&target) || self.ours(&target).is_some() => {
                self.events.push(Event::SyncDone { thread });
            }
            "lseek" => {
                let position = count(result);
                self.positions.entry(target.descriptor()).and_modify(|at| *at = at.map(|_| position));
            }
            "rename" | "renameat" | "renameat2" => {
                let names: Vec<String> = arguments.iter().filter_map(|argument| self.named(argument)).collect();
                match &names[..] {
                    [] => {}
                    [from, to] => self.events.push(Event::Renamed { from: from.clone(), to: to.clone() }),
                    _ => panic!("moved across the directory's border: {call}"),
                }
            }
            "unlink" | "unlinkat" => {
                let name = arguments.iter().find_map(|argument| self.named(argument));
                self.events.extend(name.map(|name| Event::Unlinked { name }));
            }
            "close" | "fsync" | "fdatasync" => {}
            _ => self.changed(name, &arguments, &target, result),
        }
    }

    fn opened(&mut self, call: &str, arguments: &[&str], target: &Target) {
        let Some(name) = self.ours(target) else { return };
        let flags = if call == "creat" { "O_CREAT|O_TRUNC" } else { arguments.get(2).copied().unwrap_or_default() };
        let has = |flag: &str| flags.contains(flag);
        self.positions.insert(target.descriptor(), if has("O_APPEND") { None } else { Some(0) });
        if has("O_CREAT") {
            self.events.push(Event::Made { name: name.clone() });
        }
        if has("O_TRUNC") {
            self.events.push(Event::Cut { name, length: 0 });
        }
    }

    fn changed(&mut self, call: &str, arguments: &[&str], target: &Target, result: &str) {
        let Some(name) = self.ours(target) else { return };
        match call {
            "write" | "pwrite64" => {
                let mut bytes = text(arguments[1]);
                bytes.truncate(count(result));
                let at = if call == "pwrite64" { Some(count(arguments[3])) } else { self.advance(target, bytes.len()) };
                self.events.push(Event::Written { name, at, bytes });
            }
            "ftruncate" => self.events.push(Event::Cut { name, length: count(arguments[1]) }),
            _ => panic!("`{call}` on {name} is not understood"),
        }
    }

    fn advance(&mut self, target: &Target, by: usize) -> Option<usize> {
        let position = self.positions.get_mut(&target.descriptor()).expect("a file is opened before it is written");
        let at = *position;
        *position = at.map(|at| at + by);
        at
    }

    fn is_directory(&self, target: &Target) -> bool {
        self.directory.strip_suffix('/') == Some(&target.path)
    }

    fn ours(&self, target: &Target) -> Option<String> {
        if target.deleted {
            return None;
        }
        target.path.strip_prefix(&self.directory).filter(|name| !name.contains('/')).map(str::to_owned)
    }

    fn named(&self, argument: &str) -> Option<String> {
        let path = argument.starts_with('"').then(|| String::from_utf8_lossy(&text(argument)).into_owned())?;
        path.strip_prefix(&self.directory).filter(|name| !name.contains('/')).map(str::to_owned)
    }
}

/// A descriptor as `strace -y` shows it: `3</path>`, with `(deleted)` behind it once the name is gone.
struct Target {
    number: Option<u32>,
    path: String,
    deleted: bool,
}

impl Target {
    fn read(argument: &str) -> Self {
        let (number, rest) = argument.split_once('<').unwrap_or((argument, ">"));
        let (path, rest) = rest.split_once('>').expect("a path is closed");
        let path = String::from_utf8_lossy(&bytes(path)).into_owned();
        Self { number: number.parse().ok(), path, deleted: rest.starts_with("(deleted)") }
    }

    fn descriptor(&self) -> u32 {
        self.number.expect("a call on a file names its descriptor")
    }
}

/// The number that a result or an argument begins with.
fn count(argument: &str) -> usize {
    let digits: String = argument.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().expect("a count is a number")
}

/// The bytes of `"\x61\x62"`.
fn text(argument: &str) -> Vec<u8> {
    let inner = argument.strip_prefix('"').expect("bytes are quoted");
    let (inner, rest) = inner.split_once('"').expect("bytes are closed");
    assert!(!rest.starts_with("..."), "strace cut a write short: raise its limit");
    bytes(inner)
}

fn bytes(hexadecimal: &str) -> Vec<u8> {
    let byte = |two: &str| u8::from_str_radix(two, 16).expect("strace -xx writes hexadecimal");
    hexadecimal.split("\\x").filter(|two| !two.is_empty()).map(byte).collect()
}

#[test]
fn a_trace_is_read_as_events() {
    let hex = |text: &str| text.bytes().map(|byte| format!("\\x{byte:02x}")).collect::<String>();
    let file = |number: u32, name: &str| format!("{number}<{}>", hex(&format!("/d/{name}")));
    let (db, log, at) = (file(3, "a.db"), file(4, "log"), hex("/"));
    let lines = [
        format!("7  openat(AT_FDCWD<{at}>, \"{}\", O_RDWR|O_CREAT|O_CLOEXEC, 0644) = {db}", hex("/d/a.db")),
        format!("7  openat(AT_FDCWD<{at}>, \"{}\", O_WRONLY|O_APPEND) = {log}", hex("/d/log")),
        format!("7  openat(AT_FDCWD<{at}>, \"{}\", O_RDONLY) = -1 ENOENT (No such file or directory)", hex("/d/none")),
        format!("7  lseek({db}, 4096, SEEK_SET) = 4096"),
        format!("7  write({db}, \"{}\", 2) = 2", hex("ab")),
        format!("7  write({db}, \"{}\", 2) = 1", hex("cd")),
        format!("7  write({log}, \"{}\", 1) = 1", hex("x")),
        format!("7  fdatasync({db} <unfinished ...>"),
        format!("8  pwrite64({db}, \"{}\", 1, 9 <unfinished ...>", hex("p")),
        format!("9  write(1<{}>, \"{}\", 5) = 5", hex("pipe:[1]"), hex("one\ntw")),
        "7  <... fdatasync resumed>)       = 0".to_owned(),
        "8  <... pwrite64 resumed>)        = 1".to_owned(),
        format!("9  write(1<{}>, \"{}\", 2) = 2", hex("pipe:[1]"), hex("o\n")),
        format!("7  ftruncate({db}, 10) = 0"),
        format!("7  fsync(5<{}>) = 0", hex("/d")),
        format!("7  unlink(\"{}\") = 0", hex("/d/log")),
        format!("7  write(4<{}>(deleted), \"{}\", 1) = 1", hex("/d/log"), hex("y")),
        "7  +++ exited with 0 +++".to_owned(),
    ];
    let written = |at, bytes: &str| Event::Written {
        name: if at == Some(0) { "log" } else { "a.db" }.to_owned(),
        at,
        bytes: bytes.into(),
    };
    let said = |line: &str| Event::Said { line: line.to_owned() };
    let wanted = [
        Event::Made { name: "a.db".to_owned() },
        written(Some(4096), "ab"),
        written(Some(4098), "c"),
        Event::Written { name: "log".to_owned(), at: None, bytes: b"x".to_vec() },
        Event::SyncBegun { thread: 7, name: Some("a.db".to_owned()) },
        said("one"),
        Event::SyncDone { thread: 7 },
        written(Some(9), "p"),
        said("two"),
        Event::Cut { name: "a.db".to_owned(), length: 10 },
        Event::SyncBegun { thread: 7, name: None },
        Event::SyncDone { thread: 7 },
        Event::Unlinked { name: "log".to_owned() },
    ];
    assert_eq!(events(&lines.join("\n"), "/d"), wanted);
}
