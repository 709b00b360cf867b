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
  const cases = byFirstWord(commands).map(({ word, rows }) => {
    const [only] = rows;
    if (only?.name === word) return `    ${word}) words="${wordsOf(only)}" ;;`;
    const seconds = secondWords(rows);
    const inner = rows.map((row) => `${secondWord(row)}) words="${wordsOf(row)}" ;;`).join(' ');
    return `    ${word}) case "\${COMP_WORDS[2]}" in ${inner} esac
      [ "$COMP_CWORD" -eq 2 ] && words="${seconds}" ;;`;
  });
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
  const groups = byFirstWord(commands);
  const rows = groups.map(({ word, rows: own }) => {
    const [only] = own;
    const text = only?.name === word ? only.summary : secondWords(own);
    return `'${word}:${text.replaceAll("'", "'\\''")}'`;
  });
  const cases = groups.map(({ word, rows: own }) => {
    const [only] = own;
    if (only?.name === word) return `    ${word}) compadd -- ${wordsOf(only)} ;;`;
    const inner = own.map((row) => `${secondWord(row)}) compadd -- ${wordsOf(row)} ;;`).join(' ');
    return `    ${word}) if (( CURRENT == 3 )); then compadd -- ${secondWords(own)}
      else case "$words[3]" in ${inner} esac; fi ;;`;
  });
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

interface FirstWord {
  readonly word: string;
  /** One command of this name, or those that share it as their first word. */
  readonly rows: readonly Command[];
}

function byFirstWord(commands: readonly Command[]): readonly FirstWord[] {
  const groups = Map.groupBy(commands, ({ name }) => name.split(' ')[0] ?? name);
  return [...groups].map(([word, rows]) => ({ word, rows }));
}

function secondWord({ name }: Command): string {
  return name.split(' ')[1] ?? '';
}

function secondWords(rows: readonly Command[]): string {
  return rows.map(secondWord).join(' ');
}

function namesOf(commands: readonly Command[]): string {
  return [...byFirstWord(commands).map(({ word }) => word), 'help'].join(' ');
}

function wordsOf({ words = [], options }: Command): string {
  return [...words, ...Object.keys(options).map((name) => `--${name}`), '--help'].join(' ');
}
