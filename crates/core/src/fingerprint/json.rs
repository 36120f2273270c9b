//! The canonical text of a JSON body: read strictly, written with sorted members and exact decimals.
//!
//! What does not belong here: tokenising (jiter), and a general notion of JSON equality: nothing is defaulted,
//! folded or normalised, and *absent*, `null` and a default are three things.
//!
//! One pass writes into one buffer. An object's members are put in order when it closes, so no tree is built and no
//! number becomes a float.

use std::ops::Range;

use jiter::{Jiter, JiterError, JiterErrorType, Peek};

use super::error::BodyError;
use super::frame::push_field;
use super::pointers::Node;
use super::{Rule, decimal};

/// How deep arrays and objects may nest.
const MAX_DEPTH: usize = 128;

/// The canonical text of `body` under `rule`, its ignored and chosen pointers applied.
pub(super) fn canonical(body: &[u8], rule: &Rule) -> Result<Vec<u8>, BodyError> {
    let ignore = Node::tree(rule.ignore());
    let choose = Node::tree(rule.choose());
    let mut writer = Writer {
        input: Jiter::new(body),
        out: Vec::with_capacity(body.len()),
        members: Vec::new(),
        sorted: Vec::new(),
        chosen: vec![None; rule.choose().len()],
    };
    let way = Way { ignore: ignore.as_ref(), choose: choose.as_ref() };
    let peek = writer.input.peek().map_err(not_json)?;
    writer.value(peek, way, 0)?;
    writer.input.finish().map_err(not_json)?;
    if choose.is_none() {
        return Ok(writer.out);
    }
    let mut out = Vec::new();
    for chosen in writer.chosen {
        match chosen {
            None => out.push(b'-'),
            Some(value) => {
                out.push(b'+');
                out.extend_from_slice(&value);
            }
        }
    }
    Ok(out)
}

/// Where we are in the rule's pointers.
#[derive(Clone, Copy)]
struct Way<'r> {
    ignore: Option<&'r Node>,
    choose: Option<&'r Node>,
}

impl<'r> Way<'r> {
    fn step(self, to: impl Fn(&'r Node) -> Option<&'r Node>) -> Self {
        Self { ignore: self.ignore.and_then(&to), choose: self.choose.and_then(&to) }
    }

    fn ignored(self) -> bool {
        self.ignore.is_some_and(|node| node.ends().is_some())
    }

    fn chosen(self) -> Option<usize> {
        self.choose.and_then(Node::ends)
    }
}

/// A member that was written, by its place in the buffer.
struct Member {
    /// Name field and value; nothing counts outside it.
    whole: Range<usize>,
    /// The name's bytes.
    name: Range<usize>,
    ignored: bool,
}

struct Writer<'j> {
    input: Jiter<'j>,
    out: Vec<u8>,
    /// Members of the objects that are open, innermost last.
    members: Vec<Member>,
    /// Room for putting members in order.
    sorted: Vec<u8>,
    chosen: Vec<Option<Vec<u8>>>,
}

impl Writer<'_> {
    fn value(&mut self, peek: Peek, way: Way<'_>, depth: usize) -> Result<(), BodyError> {
        let start = self.out.len();
        match peek {
            Peek::Null => {
                self.input.known_null().map_err(not_json)?;
                self.out.push(b'n');
            }
            Peek::True | Peek::False => {
                let truth = self.input.known_bool(peek).map_err(not_json)?;
                self.out.push(if truth { b't' } else { b'f' });
            }
            Peek::String => {
                let text = self.input.known_str().map_err(not_json)?;
                self.out.push(b's');
                push_field(&mut self.out, text.as_bytes());
            }
            Peek::Array | Peek::Object if depth == MAX_DEPTH => {
                let offset = self.input.current_index();
                return Err(BodyError::TooDeep { offset });
            }
            Peek::Array => self.array(way, depth + 1)?,
            Peek::Object => self.object(way, depth + 1)?,
            number => self.number(number)?,
        }
        if let Some(index) = way.chosen() {
            self.chosen[index] = Some(self.out[start..].to_vec());
        }
        Ok(())
    }

    fn number(&mut self, peek: Peek) -> Result<(), BodyError> {
        let offset = self.input.current_index();
        let number = self.input.known_number_bytes(peek).map_err(not_json)?;
        if decimal::push(number, &mut self.out) { Ok(()) } else { Err(BodyError::Exponent { offset }) }
    }

    fn array(&mut self, way: Way<'_>, depth: usize) -> Result<(), BodyError> {
        self.out.push(b'[');
        let mut next = self.input.known_array().map_err(not_json)?;
        let mut index = 0;
        while let Some(peek) = next {
            let start = self.out.len();
            let inner = way.step(|node| node.element(index));
            self.value(peek, inner, depth).map_err(|error| error.under(index.to_string().as_bytes()))?;
            if inner.ignored() {
                self.out.truncate(start);
            }
            index += 1;
            next = self.input.array_step().map_err(not_json)?;
        }
        self.out.push(b']');
        Ok(())
    }

    fn object(&mut self, way: Way<'_>, depth: usize) -> Result<(), BodyError> {
        self.out.push(b'{');
        let base = self.members.len();
        let mut next = self.input.known_object().map_err(not_json)?;
        while let Some(name) = next {
            let start = self.out.len();
            let inner = way.step(|node| node.named(name));
            push_field(&mut self.out, name.as_bytes());
            let name = self.out.len() - name.len()..self.out.len();
            let peek = self.input.peek().map_err(not_json)?;
            if let Err(error) = self.value(peek, inner, depth) {
                return Err(error.under(&self.out[name]));
            }
            self.members.push(Member { whole: start..self.out.len(), name, ignored: inner.ignored() });
            next = self.input.next_key().map_err(not_json)?;
        }
        self.put_in_order(base)?;
        self.out.push(b'}');
        Ok(())
    }

    /// Sorts the members from `base` on by name, refuses a name that came twice, and leaves out what is ignored.
    fn put_in_order(&mut self, base: usize) -> Result<(), BodyError> {
        let Self { out, members, sorted, .. } = self;
        let found = &mut members[base..];
        let name = |member: &Member| member.name.clone();
        let rising = |pair: &[Member]| out[name(&pair[0])] < out[name(&pair[1])];
        let done = found.windows(2).all(rising) && !found.iter().any(|member| member.ignored);
        if let (false, Some(first)) = (done, found.first().map(|member| member.whole.start)) {
            found.sort_unstable_by(|a, b| out[name(a)].cmp(&out[name(b)]));
            if let Some(twice) = found.windows(2).find(|pair| !rising(pair)) {
                return Err(BodyError::duplicate(&out[name(&twice[0])]));
            }
            sorted.clear();
            for member in found.iter().filter(|member| !member.ignored) {
                sorted.extend_from_slice(&out[member.whole.clone()]);
            }
            out.truncate(first);
            out.extend_from_slice(sorted);
        }
        members.truncate(base);
        Ok(())
    }
}

fn not_json(error: JiterError) -> BodyError {
    let reason = match &error.error_type {
        JiterErrorType::JsonError(inner) => inner.to_string(),
        JiterErrorType::WrongType { .. } => "expected value".to_owned(),
    };
    BodyError::NotJson { offset: error.index, reason }
}
