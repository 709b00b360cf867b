// `millrace dev`: the product for whoever tries it out or works on modules: sample data, a token that stays
// the same, lines to try, and a restart whenever a file changes.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, extname, join, relative, resolve } from 'node:path';
import { createEnvelope } from '../contracts/envelope.ts';
import type { Platform } from '../platform/create-platform.ts';
import { exitCodes, readArgs, usage, type Command, type CommandContext } from './command.ts';
import type { Paint } from './paint.ts';
import {
  runProduct,
  startOptions,
  type ProductLine,
  type RunningProduct,
} from './start-command.ts';
import { storeSections } from './store-option.ts';

const name = 'dev';
const storeFile = '.millrace/dev.db';
const tokenFile = '.millrace/dev.token';
const tokenName = 'dev';

const options = {
  ...startOptions,
  store: { ...startOptions.store, summary: `the event store (sqlite:${storeFile})` },
  fresh: { type: 'boolean', summary: `forgets what is in ${storeFile} first` },
  'no-watch': { type: 'boolean', summary: 'does not start again when a file changes' },
} as const;

export const devCommand: Command = {
  name,
  summary: 'runs the product with sample data, and again whenever a file changes',
  usage: 'dev [options]',
  options,
  examples: [
    'millrace dev',
    'millrace dev --fresh',
    'millrace dev --config shop.config.ts --no-watch',
  ],
  sections: [
    ...storeSections,
    {
      title: 'Sample data',
      rows: [
        ['samples', 'a function of millrace.config.ts: async (platform) => { … }'],
        [tokenFile, 'the admin token of the store, for the curl lines'],
      ],
    },
  ],
  async run(context) {
    const { cwd, env } = context;
    const { values, positionals } = readArgs({ name, args: context.args }, options);
    if (positionals.length > 0) throw usage(`${name} takes options only, not '${positionals[0]}'`);
    const { fresh, 'no-watch': isOnce, ...start } = values;
    if (fresh === true) {
      const files = ['', '-wal', '-shm'].map((end) => resolve(cwd, `${storeFile}${end}`));
      await Promise.all(files.map((file) => rm(file, { force: true })));
    }
    if (isOnce !== true) return watch(context);
    const isOwn = start.store === undefined && (env['MILLRACE_STORE'] ?? '') === '';
    return runProduct(context, start, {
      ...(isOwn ? { store: `sqlite:${storeFile}` } : {}),
      ready: (running) => tryOut(running, context),
    });
  },
};

/** Node watches every file that was imported, the configuration and its modules among them. */
async function watch({ args, cwd, signal }: CommandContext): Promise<number> {
  const main = join(import.meta.dirname, `main${extname(import.meta.filename)}`);
  const own = args.filter((each) => each !== '--fresh');
  const child = spawn(
    process.execPath,
    ['--watch', '--watch-preserve-output', main, name, '--no-watch', ...own],
    { cwd, stdio: 'inherit' },
  );
  const stop = (): void => void child.kill('SIGTERM');
  if (signal.aborted) stop();
  signal.addEventListener('abort', stop, { once: true });
  const [code] = (await once(child, 'exit')) as [number | null];
  return signal.aborted ? exitCodes.ok : (code ?? exitCodes.failed);
}

async function tryOut(
  { platform, config, url }: RunningProduct,
  { cwd, paint }: CommandContext,
): Promise<readonly ProductLine[]> {
  const isNew = !(await platform.tokens.list()).some((token) => token.name === tokenName);
  // Before the token: whoever is interrupted here begins again.
  const told = isNew ? await (config.samples ?? sampleOrders)(platform) : undefined;
  const file = resolve(cwd, tokenFile);
  const secret = await keepToken(platform, file);
  const lines: ProductLine[] = [
    ['admin token', `${paint.bold(secret)}  ${paint.dim(`(in ${relative(cwd, file)})`)}`],
  ];
  for (const [what, text] of told ?? []) {
    lines.push([what, `${paint.bold(text)}  ${paint.dim('(shown this once)')}`]);
  }
  if (isNew) lines.push(['sample data', paint.dim('is in; --fresh begins anew')]);
  if (url !== undefined) lines.push(['', ''], ...curlLines(platform, url, paint));
  return lines;
}

/** The same one for as long as the file is there, so that what was copied goes on to work. */
async function keepToken({ tokens }: Platform, file: string): Promise<string> {
  const kept = existsSync(file) ? (await readFile(file, 'utf8')).trim() : '';
  if (tokens.verify(kept) !== undefined) return kept;
  const old = (await tokens.list()).find(
    (token) => token.name === tokenName && token.revokedAt === undefined,
  );
  if (old !== undefined) await tokens.revoke(old.id, { by: 'millrace dev' });
  const { secret } = await tokens.create({
    name: tokenName,
    scopes: ['admin'],
    by: 'millrace dev',
  });
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, `${secret}\n`, { mode: 0o600 });
  return secret;
}

function curlLines({ modules }: Platform, url: string, paint: Paint): readonly ProductLine[] {
  const headers = `-H "Authorization: Bearer $(cat ${tokenFile})" -H 'X-Tenant-Id: core'`;
  const [model] = modules.projections.map(({ readModel }) => readModel);
  const body = `{"events":[{"type":"order.placed.v1","payload":{"amount":12.5}}]}`;
  const calls: readonly ProductLine[] = [
    ['read events', `curl -s ${headers} '${url}/api/v1/events?limit=5'`],
    ...(model === undefined
      ? [
          [
            'append one',
            `curl -s ${headers} -H 'Content-Type: application/json' ${url}/api/v1/streams/shop.order.v1-core-9/events -d '${body}'`,
          ] as const,
        ]
      : [
          [
            'documents',
            `curl -s ${headers} ${url}/api/v1/documents/${model.bc}/${model.aggregate}`,
          ] as const,
        ]),
    ['follow', `curl -sN ${headers} '${url}/api/v1/events/subscribe?after=end'`],
  ];
  return calls.map(([what, line]) => [what, paint.dim(line)]);
}

/** For a folder without modules: something to read. */
async function sampleOrders({ engines }: Platform): Promise<void> {
  for (const [id, amount] of [
    ['1', 12.5],
    ['2', 99],
  ] as const) {
    const stream = `shop.order.v1-core-${id}`;
    const context = { tenant: 'core', aggregate: { bc: 'shop', type: 'order', id } };
    const events = ['order.placed.v1', 'order.paid.v1'].map((type) =>
      createEnvelope(
        { type, payload: { amount } },
        { ...context, eventId: `sample-${id}-${type}` },
      ),
    );
    await engines.store.append(stream, events);
  }
}
