/**
 * Copied by hand from the two special-purpose address registries of IANA on 2026-11-17. A test compares it with `ipaddress` of the Python that
 * is there, but nothing notices a new entry of the registries by itself: look at them before a release.
 */

/** A range of addresses that leads to no public host, and its source. */
export interface SpecialRange {
  readonly range: string;
  readonly name: string;
  /** An RFC, or who runs the range. */
  readonly source: string;
}

const entry = (range: string, name: string, source: string): SpecialRange => ({ range, name, source });

/**
 * The IANA IPv4 Special-Purpose Address Registry (RFC 6890), all of it: the few entries that it calls globally reachable are services of the
 * network itself, and no webhook runs there. Then multicast, which has its own registry.
 */
export const special4: readonly SpecialRange[] = [
  entry("0.0.0.0/8", "this network", "RFC 791"),
  entry("0.0.0.0/32", "this host on this network", "RFC 1122"),
  entry("10.0.0.0/8", "private use", "RFC 1918"),
  entry("100.64.0.0/10", "shared address space", "RFC 6598"),
  entry("127.0.0.0/8", "loopback", "RFC 1122"),
  entry("169.254.0.0/16", "link-local", "RFC 3927"),
  entry("172.16.0.0/12", "private use", "RFC 1918"),
  entry("192.0.0.0/24", "IETF protocol assignments", "RFC 6890"),
  entry("192.0.0.0/29", "IPv4 service continuity prefix", "RFC 7335"),
  entry("192.0.0.8/32", "IPv4 dummy address", "RFC 7600"),
  entry("192.0.0.9/32", "port control protocol anycast", "RFC 7723"),
  entry("192.0.0.10/32", "TURN anycast", "RFC 8155"),
  entry("192.0.0.170/32", "NAT64 discovery", "RFC 8880"),
  entry("192.0.0.171/32", "NAT64 discovery", "RFC 8880"),
  entry("192.0.2.0/24", "documentation", "RFC 5737"),
  entry("192.31.196.0/24", "AS112", "RFC 7535"),
  entry("192.52.193.0/24", "AMT", "RFC 7450"),
  entry("192.88.99.0/24", "deprecated 6to4 relay anycast", "RFC 7526"),
  entry("192.88.99.2/32", "6a44 relay anycast", "RFC 6751"),
  entry("192.168.0.0/16", "private use", "RFC 1918"),
  entry("192.175.48.0/24", "direct delegation AS112", "RFC 7534"),
  entry("198.18.0.0/15", "benchmarking", "RFC 2544"),
  entry("198.51.100.0/24", "documentation", "RFC 5737"),
  entry("203.0.113.0/24", "documentation", "RFC 5737"),
  entry("240.0.0.0/4", "reserved", "RFC 1112"),
  entry("255.255.255.255/32", "limited broadcast", "RFC 8190"),
  entry("224.0.0.0/4", "multicast", "RFC 5771"),
];

/** The IANA IPv6 Special-Purpose Address Registry, all of it; then ranges of other registries, and deprecated ones. */
export const special6: readonly SpecialRange[] = [
  entry("::1/128", "loopback", "RFC 4291"),
  entry("::/128", "unspecified", "RFC 4291"),
  entry("::ffff:0:0/96", "IPv4-mapped", "RFC 4291"),
  entry("64:ff9b::/96", "IPv4-IPv6 translation", "RFC 6052"),
  entry("64:ff9b:1::/48", "IPv4-IPv6 translation", "RFC 8215"),
  entry("100::/64", "discard-only", "RFC 6666"),
  entry("100:0:0:1::/64", "dummy prefix", "RFC 9780"),
  entry("2001::/23", "IETF protocol assignments", "RFC 2928"),
  entry("2001::/32", "Teredo", "RFC 4380"),
  entry("2001:1::1/128", "port control protocol anycast", "RFC 7723"),
  entry("2001:1::2/128", "TURN anycast", "RFC 8155"),
  entry("2001:1::3/128", "DNS-SD service registration anycast", "RFC 9665"),
  entry("2001:2::/48", "benchmarking", "RFC 5180"),
  entry("2001:3::/32", "AMT", "RFC 7450"),
  entry("2001:4:112::/48", "AS112", "RFC 7535"),
  entry("2001:10::/28", "deprecated ORCHID", "RFC 4843"),
  entry("2001:20::/28", "ORCHIDv2", "RFC 7343"),
  entry("2001:30::/28", "drone remote identification", "RFC 9374"),
  entry("2001:db8::/32", "documentation", "RFC 3849"),
  entry("2002::/16", "6to4", "RFC 3056"),
  entry("2620:4f:8000::/48", "direct delegation AS112", "RFC 7534"),
  entry("3fff::/20", "documentation", "RFC 9637"),
  entry("5f00::/16", "segment routing identifiers", "RFC 9602"),
  entry("fc00::/7", "unique local", "RFC 4193"),
  entry("fe80::/10", "link-local", "RFC 4291"),
  entry("ff00::/8", "multicast", "RFC 4291"),
  entry("fec0::/10", "deprecated site-local", "RFC 3879"),
  entry("::/96", "deprecated IPv4-compatible", "RFC 4291"),
];

/** Addresses assigned as public that lead to the inside of a cloud for anything that runs there. */
export const insideClouds: readonly SpecialRange[] = [
  entry("168.63.129.16/32", "platform services (WireServer, DNS, health probes)", "Microsoft Azure"),
  entry("161.26.0.0/16", "infrastructure services", "IBM Cloud"),
  entry("166.8.0.0/14", "private service endpoints", "IBM Cloud"),
];
