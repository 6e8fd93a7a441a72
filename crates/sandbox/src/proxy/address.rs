//! Which addresses are public.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether an address belongs to the open internet: not to this machine, its network, a cloud's metadata, or to nobody.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    !(address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_broadcast()
        || address.is_documentation()
        || address.is_multicast()
        || a == 0
        || a >= 240
        // Shared between a provider's customers; protocol assignments; benchmarks.
        || a == 100 && (64..128).contains(&b)
        || (a, b, c) == (192, 0, 0)
        || a == 198 && (18..20).contains(&b))
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let parts = address.segments();
    let within = |part: u16, mask: u16, value: u16| part & mask == value;
    // Addresses of the fourth version in other clothes: translated, tunnelled, compatible.
    let translated = parts[..6] == [0x64, 0xff9b, 0, 0, 0, 0] || parts[..6] == [0; 6];
    let tunnelled = parts[0] == 0x2002;
    if translated || tunnelled {
        let (high, low) = if tunnelled {
            (parts[1], parts[2])
        } else {
            (parts[6], parts[7])
        };
        let inner = (u32::from(high) << 16) | u32::from(low);
        return is_public_v4(Ipv4Addr::from(inner));
    }
    // Only 2000::/3 is given out at all.
    within(parts[0], 0xe000, 0x2000)
        && parts[..2] != [0x2001, 0xdb8]
        && !(parts[0] == 0x2001 && parts[1] < 0x200)
        && !within(parts[0], 0xfff0, 0x3ff0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_open_internet_is_public() {
        for address in [
            "1.1.1.1",
            "93.184.216.34",
            "2606:4700:4700::1111",
            "::ffff:1.1.1.1",
            "64:ff9b::101:101",
        ] {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
        for address in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "127.0.0.1",
            "127.1.2.3",
            "169.254.169.254",
            "172.16.0.1",
            "192.0.0.1",
            "192.168.1.1",
            "198.18.0.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::127.0.0.1",
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
            "fe80::1",
            "fc00::1",
            "fd00:ec2::254",
            "ff02::1",
            "2001:db8::1",
            "2001::1",
            "fec0::1",
        ] {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
    }
}
