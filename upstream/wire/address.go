package wire

import "net/netip"

// A block is a range of addresses that no public server has.
type block struct {
	prefix netip.Prefix
	what   string
}

// blocks lists the special-purpose ranges of RFC 6890 and its updates. IPv6 is
// handled the other way round: outside 2000::/3 nothing is public. The first
// entry that matches names the address.
var blocks = []block{
	{netip.MustParsePrefix("0.0.0.0/8"), "reserved"},
	{netip.MustParsePrefix("10.0.0.0/8"), "private"},
	{netip.MustParsePrefix("100.64.0.0/10"), "a carrier-grade NAT address"},
	{netip.MustParsePrefix("127.0.0.0/8"), "loopback"},
	{netip.MustParsePrefix("169.254.0.0/16"), "link-local"},
	{netip.MustParsePrefix("172.16.0.0/12"), "private"},
	{netip.MustParsePrefix("192.0.0.0/24"), "reserved"},
	{netip.MustParsePrefix("192.0.2.0/24"), "a documentation address"},
	{netip.MustParsePrefix("192.88.99.0/24"), "reserved"},
	{netip.MustParsePrefix("192.168.0.0/16"), "private"},
	{netip.MustParsePrefix("198.18.0.0/15"), "a benchmark address"},
	{netip.MustParsePrefix("198.51.100.0/24"), "a documentation address"},
	{netip.MustParsePrefix("203.0.113.0/24"), "a documentation address"},
	{netip.MustParsePrefix("224.0.0.0/4"), "multicast"},
	{netip.MustParsePrefix("240.0.0.0/4"), "reserved"},

	{netip.MustParsePrefix("::1/128"), "loopback"},
	{netip.MustParsePrefix("::ffff:0:0/96"), "an IPv4 address inside IPv6"},
	{netip.MustParsePrefix("64:ff9b::/96"), "an IPv4 address inside IPv6"},
	{netip.MustParsePrefix("64:ff9b:1::/48"), "an IPv4 address inside IPv6"},
	{netip.MustParsePrefix("2001::/32"), "an IPv4 address inside IPv6"},
	{netip.MustParsePrefix("2001:2::/48"), "a benchmark address"},
	{netip.MustParsePrefix("2001::/23"), "reserved"},
	{netip.MustParsePrefix("2001:db8::/32"), "a documentation address"},
	{netip.MustParsePrefix("2002::/16"), "an IPv4 address inside IPv6"},
	{netip.MustParsePrefix("3fff::/20"), "a documentation address"},
	{netip.MustParsePrefix("fc00::/7"), "unique-local"},
	{netip.MustParsePrefix("fe80::/10"), "link-local"},
	{netip.MustParsePrefix("fec0::/10"), "private"},
	{netip.MustParsePrefix("ff00::/8"), "multicast"},
}

var globalUnicast = netip.MustParsePrefix("2000::/3")

// special says what kind of address a is when it is not one of a public server,
// and nothing when it is.
func special(a netip.Addr) string {
	if !a.IsValid() {
		return "no address"
	}
	a = a.WithZone("")
	for _, b := range blocks {
		if b.prefix.Contains(a) {
			return b.what
		}
	}
	if a.Is6() && !globalUnicast.Contains(a) {
		return "reserved"
	}
	return ""
}
