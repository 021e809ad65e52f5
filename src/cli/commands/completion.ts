import { Argument, Command } from "commander";
import { print } from "../output.ts";

const shells = ["bash", "zsh", "fish"] as const;
type Shell = (typeof shells)[number];

/** @param root how to get at the whole tree of commands, of which this is one. */
export function completionCommand(root: () => Command): Command {
  return new Command("completion")
    .description("print a script that completes commands and options in your shell")
    .addArgument(new Argument("<shell>", "which").choices([...shells]))
    .option("--json", "answer in JSON")
    .addHelpText(
      "after",
      `
  bash: escapement completion bash > ~/.local/share/bash-completion/completions/escapement
  zsh:  escapement completion zsh > "\${fpath[1]}/_escapement"
  fish: escapement completion fish > ~/.config/fish/completions/escapement.fish`,
    )
    .action((shell: Shell, flags: { json?: boolean }) => {
      const script = scripts[shell](wordsOf(root()));
      print(flags.json, { shell, script }, () => script.trimEnd().split("\n"));
    });
}

/** What may follow the words of a command: the commands below it, and its options. */
interface Words {
  readonly path: string;
  readonly commands: readonly { readonly name: string; readonly description: string }[];
  readonly options: readonly {
    readonly flag: string;
    readonly description: string;
    readonly choices: readonly string[];
  }[];
}

function wordsOf(command: Command, path: readonly string[] = []): Words[] {
  const own: Words = {
    path: path.join(" "),
    commands: command.commands.map((one) => ({ name: one.name(), description: one.description() })),
    options: command.options.flatMap(({ long, description, argChoices }) =>
      long ? { flag: long, description, choices: argChoices ?? [] } : [],
    ),
  };
  return [own, ...command.commands.flatMap((one) => wordsOf(one, [...path, one.name()]))];
}

const scripts: Readonly<Record<Shell, (words: readonly Words[]) => string>> = { bash, zsh, fish };

/** The path is made of the words that are commands; options and their values are skipped. */
function bash(words: readonly Words[]): string {
  const cases = words.map(
    ({ path, commands, options }) =>
      `    ${quote(path)}) words=${quote([...commands.map(({ name }) => name), ...options.map(({ flag }) => flag)].join(" "))};;`,
  );
  const options = words.flatMap((one) => one.options).filter(({ choices }) => choices.length > 0);
  // An option means the same in every position, but not every command takes all of its values.
  const values = [...Map.groupBy(options, ({ flag }) => flag)].map(([flag, same]) => {
    const choices = [...new Set(same.flatMap((one) => one.choices))].join(" ");
    return `    ${flag}) COMPREPLY=($(compgen -W ${quote(choices)} -- "$current")); return;;`;
  });
  const known = words.filter(({ path }) => path !== "").map(({ path }) => quote(path));
  return `# bash completion of escapement
_escapement() {
  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}" path="" words="" word next
  case "$previous" in
${values.join("\n")}
    --config|--input) COMPREPLY=($(compgen -f -- "$current")); return;;
  esac
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    next="\${path:+$path }$word"
    case "$next" in ${known.join("|")}) path="$next";; esac
  done
  case "$path" in
${cases.join("\n")}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -F _escapement escapement
`;
}

/** zsh runs completions of bash. */
function zsh(words: readonly Words[]): string {
  return `#compdef escapement
autoload -U +X bashcompinit && bashcompinit
${bash(words)}`;
}

function fish(words: readonly Words[]): string {
  const lines = words.flatMap(({ path, commands, options }) => {
    const seen = path === "" ? [] : path.split(" ");
    const below = commands.map(({ name }) => name);
    const conditions = [
      ...seen.map((word) => `__fish_seen_subcommand_from ${word}`),
      ...(below.length === 0 ? [] : [`not __fish_seen_subcommand_from ${below.join(" ")}`]),
    ];
    const when = conditions.length === 0 ? "" : ` -n ${quote(conditions.join("; and "))}`;
    return [
      ...commands.map(
        ({ name, description }) => `complete -c escapement -f${when} -a ${name} -d ${quote(description)}`,
      ),
      ...options.map(({ flag, description, choices }) => {
        const of = choices.length === 0 ? "" : ` -x -a ${quote(choices.join(" "))}`;
        return `complete -c escapement${when} -l ${flag.slice(2)}${of} -d ${quote(description)}`;
      }),
    ];
  });
  return `# fish completion of escapement\n${lines.join("\n")}\n`;
}

function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
