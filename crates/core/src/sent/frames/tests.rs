//! Frames by table, and that the cut of the reads never matters.

use super::{Frame, Frames};

/// A frame as bytes.
fn frame(kind: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    flagged(kind, 0, stream, payload)
}

fn flagged(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    bytes.extend_from_slice(&[kind, flags]);
    bytes.extend_from_slice(&stream.to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

#[test]
fn told() {
    let refused = 7_u32.to_be_bytes();
    let canceled = 8_u32.to_be_bytes();
    let goaway = |last: u32| [last.to_be_bytes(), 0_u32.to_be_bytes()].concat();
    let rows: [(Vec<u8>, Option<Frame>); 13] = [
        (frame(4, 0, &[]), None),
        (frame(0, 1, &[7; 300]), None),
        (frame(1, 1, &[0x88]), Some(Frame::Headers { stream: 1 })),
        (frame(1, 3, &[0; 70_000]), Some(Frame::Headers { stream: 3 })),
        (frame(1, 5, &[]), Some(Frame::Headers { stream: 5 })),
        (flagged(0, 1, 5, b"end"), Some(Frame::End { stream: 5 })),
        // An acknowledgement has the same bit.
        (flagged(4, 1, 0, &[]), None),
        (flagged(0, 8, 5, b"padded"), None),
        (frame(3, 1, &refused), Some(Frame::Reset { stream: 1, refused: true })),
        (frame(3, 0x8000_0003, &canceled), Some(Frame::Reset { stream: 3, refused: false })),
        (frame(7, 0, &goaway(0)), Some(Frame::GoAway { last: 0 })),
        (frame(7, 0, &[goaway(0x8000_0001), vec![0; 20]].concat()), Some(Frame::GoAway { last: 1 })),
        // Too short to say anything.
        (frame(7, 0, &[0; 4]), None),
    ];
    let whole: Vec<u8> = rows.iter().flat_map(|(bytes, _)| bytes.clone()).collect();
    let expected: Vec<Frame> = rows.iter().filter_map(|(_, told)| *told).collect();
    for size in [1, 2, 9, 10, 4096, whole.len()] {
        let mut found = Vec::new();
        let (mut plain, mut prefaced) = (Frames::new(), Frames::after_preface());
        whole.chunks(size).for_each(|piece| plain.feed(piece, |frame| found.push(frame)));
        assert_eq!(found, expected, "in pieces of {size}");
        found.clear();
        let preface = [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(), whole.clone()].concat();
        preface.chunks(size).for_each(|piece| prefaced.feed(piece, |frame| found.push(frame)));
        assert_eq!(found, expected, "behind the preface, in pieces of {size}");
    }
}
