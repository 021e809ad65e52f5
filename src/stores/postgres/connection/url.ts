import { EscapementError } from "../../../errors.ts";
import { encodeLogin } from "../../../options.ts";

/** What the URL of a Postgres server says: where it is, for the client, and the store's own options. */
export interface ParsedUrl {
  /** Without the store's own parameters. */
  readonly url: string;
  /** For messages: never its user or password. */
  readonly place: string;
  readonly options: Readonly<Record<string, string>>;
}

const own = ["schema", "connections", "callTimeout", "listen"];

/** Those of libpq and of pg, and those that hosting providers and libraries put into their URLs. */
const foreign = new Set([
  ..."host hostaddr port user password db encoding client_encoding application_name fallback_application_name".split(
    " ",
  ),
  ..."ssl sslmode sslcert sslkey sslrootcert sslnegotiation uselibpqcompat channel_binding gssencmode".split(
    " ",
  ),
  ..."options connect_timeout statement_timeout query_timeout lock_timeout keepalives keepalives_idle".split(
    " ",
  ),
  ..."idle_in_transaction_session_timeout target_session_attrs tcp_user_timeout replication".split(" "),
  ..."pgbouncer connection_limit pool_timeout pool_mode supa endpoint".split(" "),
]);

/** Reads a URL. A message never repeats it: it may hold a password. */
export function parseUrl(url: unknown): ParsedUrl {
  if (typeof url !== "string" || !/^postgres(ql)?:\/\//.test(url)) {
    return refuse("to start with postgres:// or postgresql://");
  }
  // pg reads a URL without a host as a socket, or takes the host from the parameters.
  const parsed = URL.parse(url) ?? URL.parse(url.replace("@/", "@localhost/"));
  // In a password with an unencoded # or /, the part before it looks like a host and its port.
  const isCut = parsed !== null && (parsed.hash !== "" || (parsed.username === "" && url.includes("@")));
  if (parsed === null || isCut || !canDecode(parsed.username) || !canDecode(parsed.password)) {
    return refuse(`to be like postgres://user:password@host:5432/database; ${encodeLogin}`);
  }
  const options: Record<string, string> = {};
  for (const [name, value] of parsed.searchParams) {
    if (own.includes(name)) options[name] = value;
    else if (!foreign.has(name)) {
      return refuse(`to have no parameters but ${own.join(", ")} and those of libpq, got ${named(name)}`);
    }
  }
  return {
    url: Object.keys(options).length === 0 ? url : withoutOwn(url),
    place: `${parsed.host}${parsed.pathname}`,
    options,
  };
}

/** The rest stays as written: pg treats some characters in its own way. */
function withoutOwn(url: string): string {
  const [place = "", query = ""] = url.split(/\?(.*)/s);
  const rest = query.split("&").filter((part) => !own.includes(part.split("=")[0] ?? ""));
  return rest.length === 0 ? place : `${place}?${rest.join("&")}`;
}

/** A misplaced value may be part of a password. */
function named(parameter: string): string {
  return /^[A-Za-z_]+$/.test(parameter) ? JSON.stringify(parameter) : "another one";
}

function canDecode(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}

function refuse(what: string): never {
  throw new EscapementError("invalid-option", `expected postgres's url ${what}`);
}
