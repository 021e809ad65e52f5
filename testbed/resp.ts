import { connect } from "node:net";

const timeoutMs = 5_000;

/** Asks a Redis server one thing, and gives back its answer: just enough to set servers up, without a client library. */
export function ask(url: string, ...command: string[]): Promise<string> {
  const { hostname, port, username, password } = new URL(url);
  const login = password ? [["AUTH", ...(username ? [username] : []), password].map(decodeURIComponent)] : [];
  const commands = [...login, command];
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port || 6379), hostname);
    let received = "";
    socket.setTimeout(timeoutMs, () => socket.destroy(new Error(`no answer from ${hostname}:${port}`)));
    socket.once("error", reject);
    socket.once("close", () => reject(new Error(`${hostname}:${port} closed the connection`)));
    socket.once("connect", () => socket.write(commands.map(encode).join("")));
    socket.on("data", (chunk) => {
      received += chunk.toString("latin1");
      const answers = parseAll(received);
      const error = answers.find((answer) => answer instanceof Error);
      if (error === undefined && answers.length < commands.length) return;
      socket.destroy();
      if (error !== undefined) reject(error);
      else resolve(String(answers.at(-1)));
    });
  });
}

function encode(command: readonly string[]): string {
  const words = command.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`);
  return `*${command.length}\r\n${words.join("")}`;
}

/** All whole answers in `text`: strings, numbers and errors; the words of a list are joined by spaces. */
function parseAll(text: string): (string | Error)[] {
  const answers: (string | Error)[] = [];
  for (let next = parse(text, 0); next !== undefined; next = parse(text, next.end)) answers.push(next.answer);
  return answers;
}

function parse(
  text: string,
  start: number,
): { readonly answer: string | Error; readonly end: number } | undefined {
  const lineEnd = text.indexOf("\r\n", start);
  if (lineEnd < 0) return undefined;
  const line = text.slice(start + 1, lineEnd);
  const end = lineEnd + 2;
  switch (text[start]) {
    case "-":
      return { answer: new Error(line), end };
    case "$": {
      const size = Number(line);
      if (size < 0) return { answer: "", end };
      return text.length < end + size + 2
        ? undefined
        : { answer: text.slice(end, end + size), end: end + size + 2 };
    }
    case "*":
      return parseList(text, end, Number(line));
    default:
      return { answer: line, end };
  }
}

function parseList(text: string, start: number, count: number): ReturnType<typeof parse> {
  const words: string[] = [];
  let end = start;
  for (let index = 0; index < count; index++) {
    const next = parse(text, end);
    if (next === undefined) return undefined;
    words.push(String(next.answer));
    end = next.end;
  }
  return { answer: words.join(" "), end };
}
