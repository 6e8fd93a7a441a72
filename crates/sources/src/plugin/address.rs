//! Which addresses no http tool may ever reach: pure decisions on what a name was resolved to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Names under which clouds serve a machine's credentials.
const METADATA_NAMES: [&str; 5] = [
    "metadata.google.internal",
    "metadata.goog",
    "metadata",
    "instance-data",
    "instance-data.ec2.internal",
];
/// Amazon and most others, Alibaba, Oracle, Azure.
const METADATA_V4: [Ipv4Addr; 4] = [
    Ipv4Addr::new(169, 254, 169, 254),
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(192, 0, 0, 192),
    Ipv4Addr::new(168, 63, 129, 16),
];
/// Amazon, Google.
const METADATA_V6: [Ipv6Addr; 2] = [
    Ipv6Addr::new(0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),
];

/// Why an address is never called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("it serves a cloud's metadata and credentials")]
    Metadata,
    #[error("it is a link-local address")]
    LinkLocal,
    #[error("it is a multicast address")]
    Multicast,
    #[error("it is a broadcast address")]
    Broadcast,
    #[error("it belongs to `this network` and to no host")]
    ThisNetwork,
    #[error("it is Toolcrib's own port")]
    OwnPort,
}

/// Is this a name that only ever means a metadata service?
pub fn name_refusal(host: &str) -> Option<Refusal> {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    METADATA_NAMES
        .contains(&host.as_str())
        .then_some(Refusal::Metadata)
}

/// Why `addr` may not be called, `own` being where the crib listens. Loopback and private addresses are fine.
pub fn refusal(addr: SocketAddr, own: Option<SocketAddr>) -> Option<Refusal> {
    let ips = meanings(addr.ip());
    let of_ip = ips.iter().find_map(|ip| match ip {
        IpAddr::V4(ip) => v4(*ip),
        IpAddr::V6(ip) => v6(*ip),
    });
    of_ip.or_else(|| {
        let own = own.filter(|own| own.port() == addr.port())?;
        let here = |ip: &IpAddr| {
            ip.is_loopback() || ip.is_unspecified() || meanings(own.ip()).contains(ip)
        };
        ips.iter().any(here).then_some(Refusal::OwnPort)
    })
}

fn v4(ip: Ipv4Addr) -> Option<Refusal> {
    if METADATA_V4.contains(&ip) {
        Some(Refusal::Metadata)
    } else if ip.is_link_local() {
        Some(Refusal::LinkLocal)
    } else if ip.is_multicast() {
        Some(Refusal::Multicast)
    } else if ip.is_broadcast() {
        Some(Refusal::Broadcast)
    } else if ip.octets()[0] == 0 && !ip.is_unspecified() {
        Some(Refusal::ThisNetwork)
    } else {
        None
    }
}

fn v6(ip: Ipv6Addr) -> Option<Refusal> {
    if METADATA_V6.contains(&ip) {
        Some(Refusal::Metadata)
    } else if ip.is_unicast_link_local() {
        Some(Refusal::LinkLocal)
    } else if ip.is_multicast() {
        Some(Refusal::Multicast)
    } else {
        None
    }
}

/// The address itself, and every IPv4 address that is hidden in it.
fn meanings(ip: IpAddr) -> Vec<IpAddr> {
    let mut all = vec![ip];
    if let IpAddr::V6(v6) = ip {
        all.extend(embedded(v6).into_iter().map(IpAddr::V4));
    }
    all
}

fn embedded(ip: Ipv6Addr) -> Vec<Ipv4Addr> {
    let part = ip.segments();
    let v4 = |high: u16, low: u16| Ipv4Addr::from_bits((u32::from(high) << 16) | u32::from(low));
    match part {
        // `::` and `::1` mean themselves, and `::0.0.0.x` nothing.
        [0, 0, 0, 0, 0, 0, 0, _] => Vec::new(),
        // IPv4-compatible, IPv4-mapped, IPv4-translated (RFC 4291, RFC 2765).
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low] | [0, 0, 0, 0, 0xffff, 0, high, low] => {
            vec![v4(high, low)]
        }
        // 6to4 (RFC 3056).
        [0x2002, high, low, ..] => vec![v4(high, low)],
        // NAT64, the well-known prefix and the local ones, whose length only the network knows (RFC 6052, RFC 8215).
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => vec![v4(high, low)],
        [0x64, 0xff9b, 1, a, b, c, high, low] => {
            let [_, second] = b.to_be_bytes();
            let [third, _] = c.to_be_bytes();
            vec![v4(high, low), v4(a, u16::from_be_bytes([second, third]))]
        }
        // Teredo hides the client's address inverted (RFC 4380).
        [0x2001, 0, .., high, low] => vec![v4(!high, !low)],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(ip: &str, port: u16, own: Option<&str>) -> Option<Refusal> {
        refusal(
            SocketAddr::new(ip.parse().unwrap(), port),
            own.map(|own| own.parse().unwrap()),
        )
    }

    #[test]
    fn every_form_of_an_address_is_judged() {
        use Refusal as R;
        let table = [
            ("169.254.169.254", Some(R::Metadata)),
            ("169.254.0.1", Some(R::LinkLocal)),
            ("169.254.170.2", Some(R::LinkLocal)),
            ("100.100.100.200", Some(R::Metadata)),
            ("192.0.0.192", Some(R::Metadata)),
            ("168.63.129.16", Some(R::Metadata)),
            ("fd00:ec2::254", Some(R::Metadata)),
            ("fd20:ce::254", Some(R::Metadata)),
            ("fe80::1", Some(R::LinkLocal)),
            ("febf::1", Some(R::LinkLocal)),
            ("224.0.0.1", Some(R::Multicast)),
            ("239.255.255.250", Some(R::Multicast)),
            ("ff02::1", Some(R::Multicast)),
            ("255.255.255.255", Some(R::Broadcast)),
            ("0.1.2.3", Some(R::ThisNetwork)),
            ("::ffff:169.254.169.254", Some(R::Metadata)),
            ("::169.254.169.254", Some(R::Metadata)),
            ("::ffff:0:169.254.169.254", Some(R::Metadata)),
            ("2002:a9fe:a9fe::1", Some(R::Metadata)),
            ("64:ff9b::169.254.169.254", Some(R::Metadata)),
            ("64:ff9b:1::169.254.169.254", Some(R::Metadata)),
            ("64:ff9b:1:a9fe:a9:fe00::", Some(R::Metadata)),
            ("2001:0:1:2:3:4:5601:5601", Some(R::Metadata)),
            ("::ffff:224.0.0.1", Some(R::Multicast)),
            ("::ffff:255.255.255.255", Some(R::Broadcast)),
            ("::ffff:0.1.2.3", Some(R::ThisNetwork)),
            ("127.0.0.1", None),
            ("127.1.2.3", None),
            ("::1", None),
            ("0.0.0.0", None),
            ("::", None),
            ("10.0.0.1", None),
            ("172.16.0.1", None),
            ("192.168.1.1", None),
            ("100.64.0.1", None),
            ("fd00::1", None),
            ("fd00:ec2::255", None),
            ("93.184.216.34", None),
            ("2606:2800:220:1::1", None),
            ("64:ff9b::8.8.8.8", None),
            ("2002:808:808::1", None),
        ];
        for (ip, expected) in table {
            assert_eq!(judged(ip, 80, None), expected, "{ip}");
        }
    }

    #[test]
    fn the_cribs_own_port_is_out_of_reach() {
        let own = Some("127.0.0.1:7717");
        for ip in [
            "127.0.0.1",
            "127.9.9.9",
            "::1",
            "0.0.0.0",
            "::",
            "::ffff:127.0.0.1",
            "64:ff9b::127.0.0.1",
        ] {
            assert_eq!(judged(ip, 7717, own), Some(Refusal::OwnPort), "{ip}");
            assert_eq!(judged(ip, 7718, own), None, "{ip}");
        }
        assert_eq!(judged("192.168.1.5", 7717, own), None);
        assert_eq!(
            judged("192.168.1.5", 7717, Some("192.168.1.5:7717")),
            Some(Refusal::OwnPort)
        );
        assert_eq!(
            judged("::ffff:192.168.1.5", 7717, Some("192.168.1.5:7717")),
            Some(Refusal::OwnPort)
        );
        assert_eq!(
            judged("192.168.1.5", 7717, Some("[::ffff:192.168.1.5]:7717")),
            Some(Refusal::OwnPort)
        );
        assert_eq!(
            judged("127.0.0.1", 7717, Some("192.168.1.5:7717")),
            Some(Refusal::OwnPort)
        );
    }

    #[test]
    fn metadata_names_are_refused_however_written() {
        for name in [
            "metadata.google.internal",
            "METADATA.google.internal.",
            "metadata",
            "metadata.goog",
        ] {
            assert_eq!(name_refusal(name), Some(Refusal::Metadata), "{name}");
        }
        assert_eq!(name_refusal("metadata.example.com"), None);
    }
}
