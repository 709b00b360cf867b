// Commands for developers: `millrace tour`, `new`, `lint` and `completion`.

import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join, relative, resolve } from 'node:path';
import { checkIdentifier } from '../../contracts/identifier.ts';
import {
  isLintRule,
  lintRules,
  type Finding,
  type LintRule,
} from '../../contracts/lint/finding.ts';
import type { LintReport } from '../../contracts/lint/lint-paths.ts';
import { checkTenant } from '../../contracts/tenant.ts';
import { defineTextCommand, didYouMean, exitCodes, usage, type Command } from '../command.ts';
import { flag, option, repeatable, nonNegativeInteger } from '../options.ts';
import type { Paint } from '../terminal/paint.ts';
import { createProgress } from '../terminal/progress.ts';
import { counted } from '../terminal/text.ts';

export const tourCommand = defineTextCommand({
  name: 'tour',
  summary: 'shows the contracts by calling them',
  options: {},
  examples: ['millrace tour'],
  async run({ stdout, paint }) {
    // Commands import their code when they run, so that the help is fast.
    const { tourStops } = await import('./tour-stops.ts');
    stdout.write(`${paint.bold('Millrace')}: append an event once, and everything else follows.\n`);
    for (const { title, show } of tourStops) {
      stdout.write(`\n${paint.bold(paint.cyan(title))}\n`);
      for (const { call, result, isRejected } of await show()) {
        const shown = isRejected === true ? paint.yellow(result) : paint.green(result);
        stdout.write(`${call === '' ? '' : `  ${paint.dim(call)}\n`}    ${shown}\n`);
      }
    }
    stdout.write(
      [
        '',
        paint.bold('Try next'),
        '  npm run millrace -- new aggregate banking currency --dir .millrace/try',
        '  npm run millrace -- lint src',
        '  npm run millrace -- help',
        '',
      ].join('\n'),
    );
    return exitCodes.ok;
  },
});

const kinds = ['aggregate', 'outbox'] as const;
type Kind = (typeof kinds)[number];

export const newCommand = defineTextCommand({
  name: 'new',
  summary: 'generates an aggregate (names, rules, projection, a passing test) or outbox.config.ts',
  usage: 'aggregate <bounded-context> <aggregate> | outbox <bounded-context> [options]',
  options: {
    dir: option('folder', 'folder of the bounded contexts (default: .)'),
    tenant: option('key', 'tenant in the tests and examples (default: core)'),
    force: flag('overwrites existing files'),
    'dry-run': flag('lists the files without writing them'),
  },
  examples: [
    'millrace new aggregate banking currency',
    'millrace new aggregate paymenthub payment-request --dir modules --tenant demo-za',
    'millrace new aggregate banking currency --dry-run',
    'millrace new outbox banking',
  ],
  words: kinds,
  hasArguments: true,
  async run({ values, positionals, stdout, cwd, paint }) {
    const [typed, ...words] = positionals;
    if (typed === undefined) {
      throw usage(`new needs ${kinds.join(' or ')}: try millrace new aggregate banking currency`);
    }
    const kind = kinds.find((each) => each === typed);
    if (kind === undefined) throw usage(`new: unknown kind ${didYouMean(typed, kinds)}`);
    const { bc, agg } = namesOf(kind, words);
    const tenant = values.tenant ?? 'core';
    checkTenant(tenant);

    const base = resolve(cwd, values.dir ?? '.');
    const folder = kind === 'aggregate' ? join(base, bc, agg) : base;
    const { templateFiles } = await import('./template-files.ts');
    const generated = await templateFiles(kind, { bc, agg, tenant });
    const files = generated.map(({ name, text }) => ({ path: join(folder, name), text }));
    const shown = (path: string): string => relative(cwd, path) || '.';
    const isDryRun = values['dry-run'] === true;
    const isForced = values.force === true;
    for (const { path } of isForced ? [] : files) {
      if (existsSync(path)) {
        throw usage(`'${shown(path)}' already exists: pass --force to overwrite it`);
      }
    }
    if (!isDryRun) {
      await mkdir(folder, { recursive: true });
      // `wx` also rejects a file created since the check.
      const options = { flag: isForced ? 'w' : 'wx' };
      for (const { path, text } of files) await writeFile(path, text, options);
    }
    for (const { path } of files) {
      stdout.write(`${paint.green(isDryRun ? 'would write' : 'wrote')} ${shown(path)}\n`);
    }
    if (!isDryRun) stdout.write(nextSteps[kind](shown(folder), agg));
    return exitCodes.ok;
  },
});

function namesOf(
  kind: Kind,
  [bc, agg, ...rest]: readonly string[],
): { readonly bc: string; readonly agg: string } {
  if (kind === 'outbox') {
    if (bc === undefined || agg !== undefined) {
      throw usage('new outbox needs a bounded context, such as banking');
    }
    checkIdentifier('bounded context', bc);
    return { bc, agg: 'outbox' };
  }
  if (bc === undefined || agg === undefined || rest.length > 0) {
    throw usage('new aggregate needs a bounded context and an aggregate, such as banking currency');
  }
  checkIdentifier('bounded context', bc);
  checkIdentifier('aggregate', agg);
  return { bc, agg };
}

const nextSteps: Readonly<Record<Kind, (folder: string, agg: string) => string>> = {
  aggregate: (folder, agg) =>
    [
      '',
      'Next:',
      `  node --test ${folder}/${agg}.test.ts    runs its tests, which pass`,
      `  npx millrace lint ${folder}    checks its names`,
      `  ${folder}/README.md    the checklist, with the open points`,
      '',
    ].join('\n'),
  outbox: (folder) =>
    [
      '',
      'Next:',
      `  ${join(folder, 'outbox.config.ts')}    define messages and destinations`,
      '  npx millrace outbox run    runs the outbox',
      '',
    ].join('\n'),
};

export const lintCommand = defineTextCommand({
  name: 'lint',
  summary: 'finds names that break the grammar or do not come from the builders',
  usage: '<paths…> [options]',
  options: {
    json: flag('prints one JSON document: findings, files, skipped'),
    rule: repeatable('rule', 'only this rule (repeatable)'),
    quiet: flag('hides warnings'),
    'max-warnings': option('N', 'fails if there are more warnings'),
    root: repeatable('token', 'first token of subjects (repeatable; default: gbe)'),
  },
  examples: [
    'millrace lint src',
    'millrace lint src --rule stream-name --rule redis-key',
    'millrace lint . --json --max-warnings 0',
  ],
  sections: [
    {
      title: 'Rules',
      rows: Object.entries(lintRules).map(([rule, { summary: text }]) => [rule, text]),
    },
    {
      title: 'Exceptions',
      rows: [
        ['// millrace-lint-disable-next-line <rule> -- <reason>', 'for one line'],
        ['// millrace-lint-disable-file <rule> -- <reason>', 'for a file'],
      ],
    },
  ],
  hasArguments: true,
  async run({ values, positionals, stderr, signal, cwd, paint }) {
    if (positionals.length === 0) throw usage('lint needs a path: try millrace lint src');
    const warningsMax = nonNegativeInteger('max-warnings', values['max-warnings']) ?? Infinity;
    const rules = values.rule?.map(ruleOf);
    const { lintPaths } = await import('../../contracts/lint/lint-paths.ts');
    const progress = createProgress(stderr);
    const report = await lintPaths(
      positionals.map((path) => resolve(cwd, path)),
      {
        signal,
        onProgress: ({ files, file }) => progress.show(`${files} files … ${shortPath(cwd, file)}`),
        rules,
        roots: values.root,
      },
    ).finally(() => progress.clear());

    const { findings } = report;
    const warnings = findings.filter(({ severity }) => severity === 'warning').length;
    const errors = findings.length - warnings;
    const shown = withShortPaths(report, cwd, values.quiet === true);
    const lines = shown.findings.map((finding) => findingText(finding, paint));
    return {
      document: shown,
      text: `${lines.join('')}${lintSummary(report, { errors, warnings }, paint)}`,
      exitCode: errors > 0 || warnings > warningsMax ? exitCodes.failed : exitCodes.ok,
    };
  },
});

function ruleOf(text: string): LintRule {
  if (isLintRule(text)) return text;
  throw usage(`lint: unknown rule ${didYouMean(text, Object.keys(lintRules))}`);
}

function withShortPaths(report: LintReport, cwd: string, isQuiet: boolean): LintReport {
  return {
    ...report,
    findings: report.findings
      .filter(({ severity }) => !isQuiet || severity === 'error')
      .map((finding) => Object.assign({}, finding, { file: shortPath(cwd, finding.file) })),
    skipped: report.skipped.map(({ file, reason }) => ({ file: shortPath(cwd, file), reason })),
  };
}

function shortPath(cwd: string, file: string): string {
  const path = relative(cwd, file);
  return path === '' || path.startsWith('..') ? file : path;
}

function findingText(finding: Finding, paint: Paint): string {
  const { file, line, column, severity, rule, reason, suggestion } = finding;
  const level = severity === 'error' ? paint.red(severity) : paint.yellow(severity);
  const fix = suggestion === undefined ? '' : `    ${paint.green(`→ ${suggestion}`)}\n`;
  return `${paint.bold(`${file}:${line}:${column}`)}  ${level}  ${paint.dim(rule)}  ${reason}\n${fix}`;
}

function lintSummary(
  { files, skipped, truncated }: LintReport,
  { errors, warnings }: { readonly errors: number; readonly warnings: number },
  paint: Paint,
): string {
  const found =
    errors + warnings === 0
      ? paint.green('no findings')
      : `${counted(errors, 'error')}, ${counted(warnings, 'warning')}`;
  const reasons = new Set(skipped.map(({ reason }) => reason));
  const notes = [
    `${counted(files, 'file')}: ${found}`,
    ...(skipped.length === 0 ? [] : [`${skipped.length} skipped (${[...reasons].join(', ')})`]),
    ...(truncated ? ['stopped early: there are more findings'] : []),
  ];
  return notes.join('; ');
}

const shells = { bash: bashScript, zsh: zshScript } as const;

/** Takes the table of commands as a function, since the table contains this command. */
export function completionCommand(table: () => readonly Command[]): Command {
  return defineTextCommand({
    name: 'completion',
    summary: 'prints the completion script of a shell',
    usage: 'bash|zsh',
    options: {},
    examples: [
      'source <(millrace completion bash)',
      'millrace completion zsh > ~/.zfunc/_millrace',
    ],
    words: Object.keys(shells),
    argument: 'shell: bash or zsh',
    async run({ argument: shell, stdout }) {
      if (!isShell(shell)) {
        throw usage(`completion: unknown shell ${didYouMean(shell, Object.keys(shells))}`);
      }
      stdout.write(shells[shell](table()));
      return exitCodes.ok;
    },
  });
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
    *) words="${firstWords(commands)}" ;;
  esac
  [ "$COMP_CWORD" -eq 1 ] && words="${firstWords(commands)}"
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

function firstWords(commands: readonly Command[]): string {
  return [...byFirstWord(commands).map(({ word }) => word), 'help'].join(' ');
}

function wordsOf({ words = [], options }: Command): string {
  return [...words, ...Object.keys(options).map((name) => `--${name}`), '--help'].join(' ');
}
