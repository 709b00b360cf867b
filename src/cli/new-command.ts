// `millrace new aggregate`: the checklist of a new aggregate as working code with a passing test.

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

const kinds = ['aggregate'];

export const newCommand: Command = {
  name: 'new',
  summary: 'writes a new aggregate: events, names, rules, projection and a passing test',
  usage: 'new aggregate <bounded-context> <aggregate> [options]',
  options,
  examples: [
    'millrace new aggregate banking currency',
    'millrace new aggregate paymenthub payment-request --dir modules --tenant demo-za',
    'millrace new aggregate banking currency --dry-run',
  ],
  words: kinds,
  async run({ args, stdout, cwd, paint }) {
    const { values, positionals } = readArgs({ name: 'new', args }, options);
    const [kind, bc, agg, ...rest] = positionals;
    if (kind === undefined)
      throw usage('new needs to know what: try millrace new aggregate banking currency');
    if (!kinds.includes(kind)) throw usage(`new cannot make ${didYouMean(kind, kinds)}`);
    if (bc === undefined || agg === undefined || rest.length > 0) {
      throw usage(
        'new aggregate takes a bounded context and an aggregate, such as banking currency',
      );
    }
    const tenant = values.tenant ?? 'core';
    checkIdentifier('bounded context', bc);
    checkIdentifier('aggregate', agg);
    checkTenant(tenant);

    const folder = resolve(cwd, values.dir ?? '.', bc, agg);
    const { aggregateFiles } = await import('./aggregate-files.ts');
    const generated = await aggregateFiles({ bc, agg, tenant });
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
    if (!dryRun) stdout.write(nextSteps(shown(folder), agg));
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

function nextSteps(folder: string, agg: string): string {
  return [
    '',
    'Next:',
    `  node --test ${folder}/${agg}.test.ts    its tests pass already`,
    `  npx millrace lint ${folder}    its names are clean`,
    `  ${folder}/README.md    the checklist, and what is left for you`,
    '',
  ].join('\n');
}
