//! How the contract is laid out: a member on each line, a list on one, so that people can read what programs read too.
//! What it says belongs to `contract`.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::Formatter;

/// `value` as JSON with a line end.
pub(super) fn json(value: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut text = Vec::new();
    value.serialize(&mut Serializer::with_formatter(&mut text, Lines { depth: 0 }))?;
    text.push(b'\n');
    Ok(text)
}

/// Objects over lines, lists on one. No object is empty.
struct Lines {
    depth: usize,
}

impl Lines {
    fn line<W: Write + ?Sized>(&self, writer: &mut W) -> io::Result<()> {
        write!(writer, "\n{:1$}", "", self.depth * 2)
    }
}

impl Formatter for Lines {
    fn begin_object<W: Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth += 1;
        writer.write_all(b"{")
    }

    fn begin_object_key<W: Write + ?Sized>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if !first {
            writer.write_all(b",")?;
        }
        self.line(writer)
    }

    fn begin_object_value<W: Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }

    fn end_object<W: Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth -= 1;
        self.line(writer)?;
        writer.write_all(b"}")
    }

    fn begin_array_value<W: Write + ?Sized>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }
}
