//! Whose connections are believed: an address, a network, or whoever may connect to the Unix socket. How a request came
//! belongs to `listener`.

use std::fmt;
use std::net::IpAddr;

/// A peer whose word is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Peer {
    /// An address or network.
    Net(Net),
    /// Whoever may connect to the Unix socket, which the permissions of its file and folders say.
    Unix,
}

impl Peer {
    /// Reads `unix`, `address` or `address/bits`.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text {
            "unix" => Ok(Self::Unix),
            net => Net::parse(net).map(Self::Net),
        }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Net(net) => net.fmt(f),
            Self::Unix => f.write_str("unix"),
        }
    }
}

/// An address or network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Net {
    address: IpAddr,
    bits: u8,
}

impl Net {
    /// Reads `address` or `address/bits`.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no address or network");
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse::<u8>().map_err(|_| wrong())?)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.unwrap_or(most);
        if bits > most {
            return Err(wrong());
        }
        let net = Self { address, bits };
        if masked(address, bits) != (number(address), net.address.is_ipv4()) {
            return Err(format!("{text:?} has bits set behind the prefix"));
        }
        Ok(net)
    }

    /// Whether `address` is this one or in this network. An IPv4 address inside IPv6 counts as IPv4.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        masked(address.to_canonical(), self.bits) == masked(self.address, self.bits)
    }
}

impl fmt::Display for Net {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

/// The address's number, IPv4 in the upper bits.
fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(u32::from(address)) << 96,
        IpAddr::V6(address) => u128::from(address),
    }
}

fn masked(address: IpAddr, bits: u8) -> (u128, bool) {
    let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
    (number(address) & mask, address.is_ipv4())
}
