// `millrace completion`: scripts for the shell, made from the table of commands.

import { didYouMean, exitCodes, readArgs, usage, type Command } from './command.ts';

const shells = { bash: bashScript, zsh: zshScript } as const;

/** Takes the table as a function, since it is itself a row of it. */
export function completionCommand(table: () => readonly Command[]): Command {
  return {
    name: 'completion',
    summary: 'prints the completion script of a shell',
    usage: 'completion bash|zsh',
    options: {},
    examples: [
      'source <(millrace completion bash)',
      'millrace completion zsh > ~/.zfunc/_millrace',
    ],
    words: Object.keys(shells),
    async run({ args, stdout }) {
      const { positionals } = readArgs({ name: 'completion', args }, {});
      const [shell, ...rest] = positionals;
      if (shell === undefined || rest.length > 0)
        throw usage('completion takes one shell: bash or zsh');
      if (!isShell(shell))
        throw usage(`completion does not know ${didYouMean(shell, Object.keys(shells))}`);
      stdout.write(shells[shell](table()));
      return exitCodes.ok;
    },
  };
}

function isShell(text: string): text is keyof typeof shells {
  return Object.hasOwn(shells, text);
}

function bashScript(commands: readonly Command[]): string {
  const cases = commands.map((command) => `    ${command.name}) words="${wordsOf(command)}" ;;`);
  return `_millrace() {
  local words current="\${COMP_WORDS[COMP_CWORD]}"
  case "\${COMP_WORDS[1]}" in
${cases.join('\n')}
    *) words="${namesOf(commands)}" ;;
  esac
  [ "$COMP_CWORD" -eq 1 ] && words="${namesOf(commands)}"
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _millrace millrace
`;
}

function zshScript(commands: readonly Command[]): string {
  const rows = commands.map(({ name, summary }) => `'${name}:${summary}'`);
  const cases = commands.map((command) => `    ${command.name}) compadd -- ${wordsOf(command)} ;;`);
  return `#compdef millrace
_millrace() {
  local -a commands=(${rows.join(' ')})
  if (( CURRENT == 2 )); then _describe command commands; return; fi
  case "$words[2]" in
${cases.join('\n')}
  esac
  _files
}
compdef _millrace millrace
`;
}

function namesOf(commands: readonly Command[]): string {
  return [...commands.map(({ name }) => name), 'help'].join(' ');
}

function wordsOf({ words = [], options }: Command): string {
  return [...words, ...Object.keys(options).map((name) => `--${name}`), '--help'].join(' ');
}
