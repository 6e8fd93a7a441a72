//! Which addresses lead where: the one list, for the proxy of confined processes and for http tools.
//!
//! Pure decisions on what a name was resolved to. Some addresses are never called, whoever granted them; private ones
//! only where somebody said so.

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

/// Where an address leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// The open internet.
    Public,
    /// This machine, its network, its provider's.
    Private,
    /// Nowhere that anybody should call.
    Never(Never),
}

/// Why an address is never called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Never {
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
    #[error("it is reserved and belongs to no host")]
    Reserved,
    #[error("it is Toolcrib's own port")]
    OwnPort,
}

/// Is this a name that only ever means a metadata service?
pub fn name_refusal(host: &str) -> Option<Never> {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    METADATA_NAMES
        .contains(&host.as_str())
        .then_some(Never::Metadata)
}

/// Why `addr` may not be called, `own` being where the crib listens. Loopback and private addresses are fine.
pub fn refusal(addr: SocketAddr, own: Option<SocketAddr>) -> Option<Never> {
    if let Reach::Never(why) = reach(addr.ip()) {
        return Some(why);
    }
    let own = own.filter(|own| own.port() == addr.port())?;
    let here =
        |ip: &IpAddr| ip.is_loopback() || ip.is_unspecified() || meanings(own.ip()).contains(ip);
    meanings(addr.ip())
        .iter()
        .any(here)
        .then_some(Never::OwnPort)
}

/// Where an address leads, whatever it is written as: the worst of all that it may mean.
pub fn reach(ip: IpAddr) -> Reach {
    let all = meanings(ip);
    let of = |ip: &IpAddr| match ip {
        IpAddr::V4(ip) => v4(*ip),
        IpAddr::V6(ip) => v6(*ip),
    };
    let mut worst = Reach::Public;
    for one in all.iter().map(of) {
        match (one, worst) {
            (Reach::Never(_), _) => return one,
            (Reach::Private, _) => worst = one,
            (Reach::Public, _) => {}
        }
    }
    worst
}

fn v4(ip: Ipv4Addr) -> Reach {
    let [a, b, c, _] = ip.octets();
    let never = if METADATA_V4.contains(&ip) {
        Never::Metadata
    } else if ip.is_link_local() {
        Never::LinkLocal
    } else if ip.is_multicast() {
        Never::Multicast
    } else if ip.is_broadcast() {
        Never::Broadcast
    } else if a == 0 && !ip.is_unspecified() {
        Never::ThisNetwork
    } else if a >= 240 || ip.is_documentation() || (a, b, c) == (192, 0, 0) {
        Never::Reserved
    } else {
        // Shared between a provider's customers; benchmarks, which some tunnels use for names they look up themselves.
        let shared = a == 100 && (64..128).contains(&b) || a == 198 && (18..20).contains(&b);
        let private = ip.is_private() || ip.is_loopback() || ip.is_unspecified() || shared;
        return match private {
            true => Reach::Private,
            false => Reach::Public,
        };
    };
    Reach::Never(never)
}

fn v6(ip: Ipv6Addr) -> Reach {
    let part = ip.segments();
    let within = |mask: u16, value: u16| part[0] & mask == value;
    let never = if METADATA_V6.contains(&ip) {
        Never::Metadata
    } else if ip.is_unicast_link_local() {
        Never::LinkLocal
    } else if ip.is_multicast() {
        Never::Multicast
    // Documentation, twice; what sites once used; what throws everything away.
    } else if part[..2] == [0x2001, 0xdb8]
        || part[0] == 0x3fff && part[1] < 0x1000
        || within(0xffc0, 0xfec0)
        || part[..4] == [0x100, 0, 0, 0]
    {
        Never::Reserved
    } else {
        // Only 2000::/3 is given out at all, some of it for protocols. What hides an address of the fourth version in a
        // form that is forwarded is as public as that.
        let given = within(0xe000, 0x2000) && !(part[0] == 0x2001 && part[1] < 0x200);
        let mapped = part[..6] == [0, 0, 0, 0, 0, 0xffff];
        let translated = part[..6] == [0x64, 0xff9b, 0, 0, 0, 0];
        return match given || mapped || translated {
            true => Reach::Public,
            false => Reach::Private,
        };
    };
    Reach::Never(never)
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

    fn judged(ip: &str, port: u16, own: Option<&str>) -> Option<Never> {
        refusal(
            SocketAddr::new(ip.parse().unwrap(), port),
            own.map(|own| own.parse().unwrap()),
        )
    }

    #[test]
    fn every_form_of_an_address_is_judged() {
        use Reach::{Private, Public};
        let metadata = Reach::Never(Never::Metadata);
        let link_local = Reach::Never(Never::LinkLocal);
        let multicast = Reach::Never(Never::Multicast);
        let broadcast = Reach::Never(Never::Broadcast);
        let this_network = Reach::Never(Never::ThisNetwork);
        let reserved = Reach::Never(Never::Reserved);
        let table = [
            ("169.254.169.254", metadata),
            ("100.100.100.200", metadata),
            ("192.0.0.192", metadata),
            ("168.63.129.16", metadata),
            ("fd00:ec2::254", metadata),
            ("fd20:ce::254", metadata),
            ("::ffff:169.254.169.254", metadata),
            ("::ffff:168.63.129.16", metadata),
            ("::169.254.169.254", metadata),
            ("::ffff:0:169.254.169.254", metadata),
            ("2002:a9fe:a9fe::1", metadata),
            ("64:ff9b::169.254.169.254", metadata),
            ("64:ff9b:1::169.254.169.254", metadata),
            ("64:ff9b:1:a9fe:a9:fe00::", metadata),
            ("2001:0:1:2:3:4:5601:5601", metadata),
            ("169.254.0.1", link_local),
            ("169.254.170.2", link_local),
            ("fe80::1", link_local),
            ("febf::1", link_local),
            ("224.0.0.1", multicast),
            ("239.255.255.250", multicast),
            ("ff02::1", multicast),
            ("::ffff:224.0.0.1", multicast),
            ("255.255.255.255", broadcast),
            ("::ffff:255.255.255.255", broadcast),
            ("0.1.2.3", this_network),
            ("::ffff:0.1.2.3", this_network),
            ("192.0.0.1", reserved),
            ("192.0.2.1", reserved),
            ("203.0.113.9", reserved),
            ("240.0.0.1", reserved),
            ("2001:db8::1", reserved),
            ("3fff::1", reserved),
            ("fec0::1", reserved),
            ("100::1", reserved),
            ("0.0.0.0", Private),
            ("10.0.0.1", Private),
            ("100.64.0.1", Private),
            ("127.0.0.1", Private),
            ("127.1.2.3", Private),
            ("172.16.0.1", Private),
            ("192.168.1.1", Private),
            ("198.18.0.1", Private),
            ("::", Private),
            ("::1", Private),
            ("::1.1.1.1", Private),
            ("::127.0.0.1", Private),
            ("::ffff:10.0.0.1", Private),
            ("::ffff:127.0.0.1", Private),
            ("::ffff:0:1.1.1.1", Private),
            ("2001::1", reserved),
            ("2001:0:1:2:3:4:f7f7:f7f7", Private),
            ("2002:7f00:1::", Private),
            ("64:ff9b::7f00:1", Private),
            ("64:ff9b:1::1.1.1.1", Private),
            ("fc00::1", Private),
            ("fd00::1", Private),
            ("fd00:ec2::255", Private),
            ("4000::1", Private),
            ("1.1.1.1", Public),
            ("93.184.216.34", Public),
            ("168.63.129.17", Public),
            ("2002:808:808::1", Public),
            ("2606:2800:220:1::1", Public),
            ("2606:4700:4700::1111", Public),
            ("64:ff9b::8.8.8.8", Public),
            ("::ffff:1.1.1.1", Public),
        ];
        for (ip, expected) in table {
            assert_eq!(reach(ip.parse().unwrap()), expected, "{ip}");
            let refused = matches!(expected, Reach::Never(_));
            assert_eq!(judged(ip, 80, None).is_some(), refused, "{ip}");
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
            assert_eq!(judged(ip, 7717, own), Some(Never::OwnPort), "{ip}");
            assert_eq!(judged(ip, 7718, own), None, "{ip}");
        }
        assert_eq!(judged("192.168.1.5", 7717, own), None);
        assert_eq!(
            judged("192.168.1.5", 7717, Some("192.168.1.5:7717")),
            Some(Never::OwnPort)
        );
        assert_eq!(
            judged("::ffff:192.168.1.5", 7717, Some("192.168.1.5:7717")),
            Some(Never::OwnPort)
        );
        assert_eq!(
            judged("192.168.1.5", 7717, Some("[::ffff:192.168.1.5]:7717")),
            Some(Never::OwnPort)
        );
        assert_eq!(
            judged("127.0.0.1", 7717, Some("192.168.1.5:7717")),
            Some(Never::OwnPort)
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
            assert_eq!(name_refusal(name), Some(Never::Metadata), "{name}");
        }
        assert_eq!(name_refusal("metadata.example.com"), None);
    }
}
