//! A rule's JSON pointers as a tree that is walked beside the body.
//!
//! What does not belong here: parsing and writing a rule's text (`rule`).

use std::collections::BTreeMap;

use jsonptr::Pointer;

/// One step of the pointers: which names or indices lead on, and which pointer ends here.
#[derive(Debug, Default)]
pub(super) struct Node {
    children: BTreeMap<String, Node>,
    ends: Option<usize>,
}

impl Node {
    /// The tree of `pointers`, which a rule has validated; `None` if there are none.
    pub(super) fn tree(pointers: &[String]) -> Option<Node> {
        if pointers.is_empty() {
            return None;
        }
        let mut root = Node::default();
        for (index, pointer) in pointers.iter().enumerate() {
            let mut node = &mut root;
            for token in tokens(pointer) {
                node = node.children.entry(token).or_default();
            }
            node.ends = Some(index);
        }
        Some(root)
    }

    /// The step for the member `name` of an object.
    pub(super) fn named(&self, name: &str) -> Option<&Node> {
        self.children.get(name)
    }

    /// The step for an array's element. RFC 6901: digits without leading zeros; `-` names no element that exists.
    pub(super) fn element(&self, index: usize) -> Option<&Node> {
        if self.children.is_empty() {
            return None;
        }
        self.named(&index.to_string())
    }

    /// The position, in the rule's list, of the pointer that ends here.
    pub(super) fn ends(&self) -> Option<usize> {
        self.ends
    }
}

/// The unescaped tokens of a pointer; none if it is malformed, which a rule has excluded.
pub(super) fn tokens(pointer: &str) -> Vec<String> {
    match Pointer::parse(pointer) {
        Ok(pointer) => pointer.tokens().map(|token| token.decoded().into_owned()).collect(),
        Err(_) => Vec::new(),
    }
}
