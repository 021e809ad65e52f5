import { type LookupAddress, lookup as systemLookup } from "node:dns";
import { BlockList, isIP, type LookupFunction } from "node:net";

/** An address that the guard does not let through. Nothing was sent. */
export class ForbiddenAddress extends Error {
  override readonly name: string = "ForbiddenAddress";
}

/** All that does not lead to a public host: RFC 6890 and the registries of special-purpose addresses. */
const forbidden4 = [
  "0.0.0.0/8", // this network
  "10.0.0.0/8", // private
  "100.64.0.0/10", // shared by carriers (CGNAT); a cloud's metadata lives there too
  "127.0.0.0/8", // loopback
  "169.254.0.0/16", // link-local; metadata
  "172.16.0.0/12", // private
  "192.0.0.0/24", // protocol assignments
  "192.0.2.0/24", // documentation
  "192.31.196.0/24", // AS112
  "192.52.193.0/24", // AMT
  "192.88.99.0/24", // 6to4 relays
  "192.168.0.0/16", // private
  "192.175.48.0/24", // AS112
  "198.18.0.0/15", // benchmarks
  "198.51.100.0/24", // documentation
  "203.0.113.0/24", // documentation
  "224.0.0.0/4", // multicast
  "240.0.0.0/4", // reserved, broadcast
];

/** Only 2000::/3 is given out to public hosts; parts of it are not. */
const public6 = "2000::/3";
const forbidden6 = [
  "2001::/23", // protocol assignments, Teredo
  "2001:db8::/32", // documentation
  "2002::/16", // 6to4: an IPv4 address inside
  "2620:4f:8000::/48", // AS112
  "3fff::/20", // documentation
];

const ranges4 = blockList(forbidden4);
const ranges6 = blockList(forbidden6);
const wide6 = blockList([public6]);

function blockList(ranges: readonly string[]): BlockList {
  const list = new BlockList();
  for (const range of ranges) {
    const [address = "", bits] = range.split("/");
    const family = isIP(address) === 6 ? "ipv6" : "ipv4";
    list.addSubnet(address, bits === undefined ? (family === "ipv6" ? 128 : 32) : Number(bits), family);
  }
  return list;
}

/** Whether an address leads to a public host. IPv4 inside IPv6 (mapped, 6to4, NAT64, …) never does: nobody needs it to reach one. */
export function isPublic(address: string): boolean {
  const bare = address.split("%")[0] ?? "";
  if (isIP(bare) === 4) return !ranges4.check(bare, "ipv4");
  if (isIP(bare) !== 6) return false;
  return wide6.check(bare, "ipv6") && !ranges6.check(bare, "ipv6");
}

/** Decides which addresses may be connected to, and makes sure that it is these that are. */
export class AddressGuard {
  readonly #allowed: BlockList;

  /** @param allow addresses and ranges that are let through although they are not public. */
  constructor(allow: readonly string[]) {
    this.#allowed = blockList(allow);
  }

  allows(address: string): boolean {
    if (isPublic(address)) return true;
    const family = isIP(address);
    return family !== 0 && this.#allowed.check(address, family === 6 ? "ipv6" : "ipv4");
  }

  /** Why a host must not be called, if it is an address: that is never looked up, so that it has to be asked here. */
  refusal(hostname: string): ForbiddenAddress | null {
    const bare = hostname.replace(/^\[|\]$/g, "");
    return isIP(bare) === 0 || this.allows(bare) ? null : this.#forbidden(bare, [bare]);
  }

  /**
   * Resolves a name, and lets the connection be made to an allowed address only. What was checked is what is connected to: the name is
   * not asked for again in between, when it might lead elsewhere.
   */
  readonly lookup: LookupFunction = (hostname, options, callback) => {
    systemLookup(hostname, { ...options, all: true }, (error, found) => {
      if (error) return callback(error, "", 0);
      const all = found as LookupAddress[];
      const allowed = all.filter(({ address }) => this.allows(address));
      const [first] = allowed;
      if (first === undefined) {
        const addresses = all.map(({ address }) => address);
        return callback(this.#forbidden(hostname, addresses), "", 0);
      }
      if (options.all) return callback(null, allowed);
      callback(null, first.address, first.family);
    });
  };

  #forbidden(host: string, addresses: readonly string[]): ForbiddenAddress {
    const where =
      addresses.join(", ") === host ? "" : ` leads to ${addresses.join(", ") || "nowhere"}, which`;
    return new ForbiddenAddress(
      `${host}${where} is not a public address; if that is meant, allow it with \`allow: ["address or range"]\``,
    );
  }
}
