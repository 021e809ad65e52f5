import { type LookupAddress, lookup as systemLookup } from "node:dns";
import { BlockList, isIP, type LookupFunction } from "node:net";
import { insideClouds, special4, special6 } from "./special-addresses.ts";

/** An address that the guard refuses. Nothing was sent. */
export class ForbiddenAddress extends Error {
  override readonly name: string = "ForbiddenAddress";
}

/** The only range assigned to public hosts; parts of it are not public. */
const public6 = blockList(["2000::/3"]);
const forbidden4 = blockList([...special4, ...insideClouds].map(({ range }) => range));
// A separate list: in a list for both families, the range of mapped addresses would match all of IPv4.
const forbidden6 = blockList(special6.map(({ range }) => range));

function blockList(ranges: readonly string[]): BlockList {
  const list = new BlockList();
  for (const range of ranges) {
    const [address = "", bits] = range.split("/");
    const family = isIP(address) === 6 ? "ipv6" : "ipv4";
    list.addSubnet(address, bits === undefined ? (family === "ipv6" ? 128 : 32) : Number(bits), family);
  }
  return list;
}

/** Whether an address leads to a public host. IPv4 inside IPv6 (mapped, 6to4, NAT64, …) never does: it is not needed to reach one. */
export function isPublic(address: string): boolean {
  const bare = address.split("%")[0] ?? "";
  if (isIP(bare) === 4) return !forbidden4.check(bare, "ipv4");
  if (isIP(bare) !== 6) return false;
  return public6.check(bare, "ipv6") && !forbidden6.check(bare, "ipv6");
}

/** Decides which addresses may be connected to, and ensures that only those are. */
export class AddressGuard {
  readonly #allowed: BlockList;

  /** @param allow addresses and ranges that are allowed although they are not public. */
  constructor(allow: readonly string[]) {
    this.#allowed = blockList(allow);
  }

  allows(address: string): boolean {
    if (isPublic(address)) return true;
    const family = isIP(address);
    return family !== 0 && this.#allowed.check(address, family === 6 ? "ipv6" : "ipv4");
  }

  /** Why a host must not be called, if it is an address: an address is never looked up, so it must be checked here. */
  refusal(hostname: string): ForbiddenAddress | null {
    const bare = hostname.replace(/^\[|\]$/g, "");
    return isIP(bare) === 0 || this.allows(bare) ? null : this.#forbidden(bare, [bare]);
  }

  /**
   * Resolves a name, and allows connections only to an allowed address. The checked address is the one that is used: the name is
   * not resolved again in between, when it might lead elsewhere.
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
