import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { describe, test } from "node:test";
import { AddressGuard, isPublic } from "./address-guard.ts";
import { insideClouds, special4, special6 } from "./special-addresses.ts";

/** The first and the last address of a range, and those right before and after it. */
function edgesOf(range: string): { readonly within: string[]; readonly around: string[] } {
  const [address = "", bits = ""] = range.split("/");
  const wide = address.includes(":") ? 128n : 32n;
  const size = 1n << (wide - BigInt(bits));
  const first = numberOf(address);
  const write = wide === 128n ? text6 : text4;
  const outside = [first - 1n, first + size].filter((one) => one >= 0n && one < 1n << wide);
  return { within: [first, first + size / 2n, first + size - 1n].map(write), around: outside.map(write) };
}

function numberOf(address: string): bigint {
  if (!address.includes(":")) return address.split(".").reduce((sum, part) => sum * 256n + BigInt(part), 0n);
  const [head = "", tail] = address.split("::");
  const groups = (text: string): string[] => (text === "" ? [] : text.split(":"));
  const [before, after] = [groups(head), groups(tail ?? "")];
  const zeros: string[] = new Array(8 - before.length - after.length).fill("0");
  return [...before, ...zeros, ...after].reduce((sum, part) => sum * 65_536n + BigInt(`0x${part}`), 0n);
}

const text4 = (value: bigint): string => [24n, 16n, 8n, 0n].map((by) => (value >> by) & 255n).join(".");
const text6 = (value: bigint): string =>
  Array.from({ length: 8 }, (_, at) => ((value >> BigInt(112 - 16 * at)) & 65_535n).toString(16)).join(":");

/** A second source, maintained by others: the module `ipaddress` of whatever Python is on the machine. */
const python = {
  skip: spawnSync("python3", ["-c", "import ipaddress"]).status === 0 ? false : "there is no python3",
  notGlobal(addresses: readonly string[]): string[] {
    const program = `
import ipaddress, sys
for line in sys.stdin:
    address = ipaddress.ip_address(line.strip())
    if not address.is_global or address.is_multicast: print(address)`;
    const input = addresses.join("\n");
    const text = execFileSync("python3", ["-c", program], { input, encoding: "utf8", maxBuffer: 2 ** 26 });
    return text.trim().split("\n");
  },
};

const inside = [
  ["this network", "0.0.0.0", "0.1.2.3"],
  ["private", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "fd00::1", "fc00::1"],
  ["loopback", "127.0.0.1", "127.255.255.254", "::1"],
  ["link-local and metadata", "169.254.169.254", "169.254.0.1", "fe80::1", "fe80::1%eth0", "fd00:ec2::254"],
  ["CGNAT and its metadata", "100.64.0.1", "100.127.255.255", "100.100.100.200"],
  ["multicast", "224.0.0.1", "239.255.255.255", "ff02::1", "ff0e::1"],
  ["broadcast and reserved", "255.255.255.255", "240.0.0.1"],
  [
    "documentation, benchmarks",
    "192.0.2.1",
    "198.51.100.1",
    "203.0.113.9",
    "198.18.0.1",
    "2001:db8::1",
    "3fff::1",
  ],
  ["IPv4 mapped and compatible", "::ffff:127.0.0.1", "::ffff:8.8.8.8", "::ffff:7f00:1", "::127.0.0.1"],
  ["NAT64", "64:ff9b::7f00:1", "64:ff9b::8.8.8.8", "64:ff9b:1::1"],
  ["6to4 and Teredo", "2002:7f00:1::1", "2002:c0a8:101::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2"],
  ["unspecified, deprecated, discard", "::", "fec0::1", "100::1", "5f00::1"],
  ["no address at all", "", "localhost", "127.1", "0x7f000001", "1.2.3.4.5"],
] as const;

describe("the guard against calls to the inside", () => {
  for (const [what, ...addresses] of inside) {
    test(`${what}: not public`, () => {
      for (const address of addresses) assert.equal(isPublic(address), false, address);
    });
  }

  for (const { range, name, source } of [...special4, ...special6, ...insideClouds]) {
    test(`${range}, ${name} (${source}): not public, from its first address to its last`, () => {
      for (const address of edgesOf(range).within) assert.equal(isPublic(address), false, address);
    });
  }

  test("what stands right beside a special range is public, unless it is in another", () => {
    const beside = (ranges: typeof special4): string[] =>
      ranges.flatMap(({ range }) => edgesOf(range).around).filter(isPublic);
    const four = ["1.0.0.0", "9.255.255.255", "11.0.0.0", "126.255.255.255", "128.0.0.0", "169.253.255.255"];
    const found = beside([...special4, ...insideClouds]);
    for (const address of [...four, "168.63.129.15", "168.63.129.17", "223.255.255.255"])
      assert(found.includes(address), address);
    const six = beside(special6);
    for (const address of [
      "2001:db7:ffff:ffff:ffff:ffff:ffff:ffff",
      "2001:200:0:0:0:0:0:0",
      "2003:0:0:0:0:0:0:0",
    ])
      assert(six.includes(address), address);
  });

  test("what Python takes for no global address is not public", { skip: python.skip }, () => {
    const edges = [...special4, ...special6].flatMap(({ range }) => {
      const { within, around } = edgesOf(range);
      return [...within, ...around];
    });
    // Also where this list has nothing: a new range would be among these.
    const places = Array.from({ length: 65_536 }, (_, n) => n);
    const blocks4 = places.map((n) => `${n >> 8}.${n & 255}.0.1`);
    const blocks6 = places.flatMap((n) => [`${n.toString(16)}::1`, `2001:${n.toString(16)}::1`]);
    const found = python.notGlobal([...edges, ...blocks4, ...blocks6]);
    assert(found.length > 1_000, `it knows ${found.length}`);
    assert.deepEqual(found.filter(isPublic), []);
  });

  test("public hosts pass", () => {
    for (const address of ["8.8.8.8", "1.1.1.1", "172.15.0.1", "172.32.0.1", "100.63.0.1", "100.128.0.1"]) {
      assert.equal(isPublic(address), true, address);
    }
    for (const address of ["2606:4700:4700::1111", "2a00:1450:4001:80b::200e", "2400:cb00::1"]) {
      assert.equal(isPublic(address), true, address);
    }
  });

  test("what is allowed by range passes, and only that", () => {
    const guard = new AddressGuard(["10.1.0.0/16", "::1"]);
    assert(guard.allows("10.1.2.3") && guard.allows("::1") && guard.allows("8.8.8.8"));
    assert(!guard.allows("10.2.0.1") && !guard.allows("127.0.0.1") && !guard.allows("::2"));
  });

  test("a name is resolved once, and only what was checked is connected to", async () => {
    const guard = new AddressGuard([]);
    const resolved = await new Promise<{ error: Error | null; address: unknown }>((resolve) => {
      guard.lookup("localhost", { all: true }, (error, address) => resolve({ error, address }));
    });
    assert.match(String(resolved.error), /localhost leads to .*, which is not a public address/);
    const open = new AddressGuard(["127.0.0.0/8"]);
    const addresses = await new Promise<unknown>((resolve) => {
      open.lookup("localhost", { all: true, family: 4 }, (_error, address) => resolve(address));
    });
    assert.deepEqual(addresses, [{ address: "127.0.0.1", family: 4 }]);
  });
});
