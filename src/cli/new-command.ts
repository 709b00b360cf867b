// `millrace new`: the checklist of a new aggregate as working code with a passing test, or an outbox to run.

import { access, mkdir, writeFile } from 'node:fs/promises';
import { join, relative, resolve } from 'node:path';
import { checkIdentifier } from '../contracts/identifier.ts';
import { checkTenant } from '../contracts/tenant.ts';
import { didYouMean, exitCodes, readArgs, usage, type Command } from './command.ts';

const options = {
  dir: { type: 'string', value: 'folder', summary: 'where the bounded contexts are (.)' },
  tenant: { type: 'string', value: 'key', summary: 'the tenant in its tests and examples (core)' },
  force: { type: 'boolean', summary: 'overwrites files that exist' },
  'dry-run': { type: 'boolean', summary: 'says what would be written, and writes nothing' },
} as const;

const kinds = ['aggregate', 'outbox'] as const;
type Kind = (typeof kinds)[number];

export const newCommand: Command = {
  name: 'new',
  summary: 'writes a new aggregate (names, rules, projection, a passing test) or outbox.config.ts',
  usage: 'new aggregate <bounded-context> <aggregate> | outbox <bounded-context> [options]',
  options,
  examples: [
    'millrace new aggregate banking currency',
    'millrace new aggregate paymenthub payment-request --dir modules --tenant demo-za',
    'millrace new aggregate banking currency --dry-run',
    'millrace new outbox banking',
  ],
  words: kinds,
  async run({ args, stdout, cwd, paint }) {
    const { values, positionals } = readArgs({ name: 'new', args }, options);
    const [kind, ...words] = positionals;
    if (kind === undefined)
      throw usage('new needs to know what: try millrace new aggregate banking currency');
    if (!isKind(kind)) throw usage(`new cannot make ${didYouMean(kind, kinds)}`);
    const { bc, agg } = namesOf(kind, words);
    const tenant = values.tenant ?? 'core';
    checkTenant(tenant);

    const base = resolve(cwd, values.dir ?? '.');
    const folder = kind === 'aggregate' ? join(base, bc, agg) : base;
    const { templateFiles } = await import('./template-files.ts');
    const generated = await templateFiles(kind, { bc, agg, tenant });
    const files = generated.map(({ name, text }) => ({ path: join(folder, name), text }));
    const shown = (path: string): string => relative(cwd, path) || '.';
    const dryRun = values['dry-run'] === true;
    if (values.force !== true)
      await refuseExisting(
        files.map(({ path }) => path),
        shown,
      );

    if (!dryRun) {
      await mkdir(folder, { recursive: true });
      // `wx` also refuses a file that appeared since the check.
      const flag = values.force === true ? 'w' : 'wx';
      for (const { path, text } of files) await writeFile(path, text, { flag });
    }
    for (const { path } of files) {
      stdout.write(`${paint.green(dryRun ? 'would write' : 'wrote')} ${shown(path)}\n`);
    }
    if (!dryRun) stdout.write(nextSteps[kind](shown(folder), agg));
    return exitCodes.ok;
  },
};

async function refuseExisting(
  paths: readonly string[],
  shown: (path: string) => string,
): Promise<void> {
  for (const path of paths) {
    if (await exists(path)) {
      throw usage(`'${shown(path)}' exists already: pass --force to overwrite it`);
    }
  }
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

const nextSteps: Readonly<Record<Kind, (folder: string, agg: string) => string>> = {
  aggregate: (folder, agg) =>
    [
      '',
      'Next:',
      `  node --test ${folder}/${agg}.test.ts    its tests pass already`,
      `  npx millrace lint ${folder}    its names are clean`,
      `  ${folder}/README.md    the checklist, and what is left for you`,
      '',
    ].join('\n'),
  outbox: (folder) =>
    [
      '',
      'Next:',
      `  ${join(folder, 'outbox.config.ts')}    say what leaves, and where to`,
      '  npx millrace outbox run    runs it',
      '',
    ].join('\n'),
};

function isKind(text: string): text is Kind {
  return kinds.some((kind) => kind === text);
}

function namesOf(
  kind: Kind,
  [bc, agg, ...rest]: readonly string[],
): { readonly bc: string; readonly agg: string } {
  if (kind === 'outbox') {
    if (bc === undefined || agg !== undefined) {
      throw usage('new outbox takes a bounded context, such as banking');
    }
    checkIdentifier('bounded context', bc);
    return { bc, agg: 'outbox' };
  }
  if (bc === undefined || agg === undefined || rest.length > 0) {
    throw usage('new aggregate takes a bounded context and an aggregate, such as banking currency');
  }
  checkIdentifier('bounded context', bc);
  checkIdentifier('aggregate', agg);
  return { bc, agg };
}
