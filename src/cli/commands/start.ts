// `millrace start` runs the product; `millrace dev` runs it with sample data, a fixed token and example
// requests, and restarts it when a file changes.

import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import { basename, extname, join, resolve } from 'node:path';
import { createEnvelope } from '../../contracts/envelope.ts';
import type { Platform } from '../../platform/create-platform.ts';
import { writeSecret } from '../admin-token.ts';
import { defineTextCommand, exitCodes, type CommandContext } from '../command.ts';
import { flag } from '../options.ts';
import type { BannerLine, RunningProduct } from '../product-banner.ts';
import { productOptions } from '../product-settings.ts';
import { runProduct } from '../product.ts';
import type { Paint } from '../terminal/paint.ts';

export const startCommand = defineTextCommand({
  name: 'start',
  summary: 'runs the product in one process until Ctrl-C',
  usage: '[options]',
  options: {
    ...productOptions,
    json: flag('prints the addresses as one line of JSON when ready'),
  },
  examples: [
    'millrace start',
    'millrace start --port 0 --no-kurrent --json',
    'millrace start --roles dispatcher,workers --store postgres://localhost/shop',
    'millrace start --store postgres://localhost/shop --kurrent-port 2114',
    'millrace start --host 0.0.0.0 --tls-cert server.crt --tls-key server.key',
  ],
  async run(context) {
    const { json, ...values } = context.values;
    return runProduct(context, values, { isJson: json === true });
  },
});

const storeFile = '.millrace/dev.db';
const tokenFile = '.millrace/dev.token';
const tokenName = 'dev';

export const devCommand = defineTextCommand({
  name: 'dev',
  summary: 'runs the product with sample data and restarts it when a file changes',
  usage: '[options]',
  options: {
    ...productOptions,
    store: { ...productOptions.store, summary: `event store (default: sqlite:${storeFile})` },
    fresh: flag(`deletes ${storeFile} first`),
    'no-watch': flag('does not restart when a file changes'),
  },
  examples: [
    'millrace dev',
    'millrace dev --fresh',
    'millrace dev --config shop.config.ts --no-watch',
  ],
  sections: [
    {
      title: 'Sample data',
      rows: [
        ['samples', 'function in millrace.config.ts: async (platform) => { … }'],
        [tokenFile, 'admin token of the store, used by the curl lines'],
      ],
    },
  ],
  async run(context) {
    const { cwd, env } = context;
    const { fresh, 'no-watch': isOnce, ...values } = context.values;
    if (fresh === true) {
      const files = ['', '-wal', '-shm'].map((end) => resolve(cwd, `${storeFile}${end}`));
      await Promise.all(files.map((file) => rm(file, { force: true })));
    }
    if (isOnce !== true) return watch(context);
    const isOwnStore = values.store === undefined && (env['MILLRACE_STORE'] ?? '') === '';
    return runProduct(context, values, {
      store: isOwnStore ? `sqlite:${storeFile}` : undefined,
      ready: (running) => prepareSamples(running, context),
      isOwnToken: (file) => file === basename(tokenFile),
    });
  },
});

/** Node watches every imported file, including the configuration and its modules. */
async function watch({ args, cwd, signal }: CommandContext): Promise<number> {
  const main = join(import.meta.dirname, '..', `main${extname(import.meta.filename)}`);
  const passed = args.filter((each) => each !== '--fresh');
  const { spawn } = await import('node:child_process');
  const child = spawn(
    process.execPath,
    ['--watch', '--watch-preserve-output', main, 'dev', '--no-watch', ...passed],
    { cwd, stdio: 'inherit' },
  );
  const stop = (): void => void child.kill('SIGTERM');
  if (signal.aborted) stop();
  signal.addEventListener('abort', stop, { once: true });
  const [code] = (await once(child, 'exit')) as [number | null];
  return signal.aborted ? exitCodes.ok : (code ?? exitCodes.failed);
}

async function prepareSamples(
  { platform, config, url }: RunningProduct,
  { cwd, paint }: CommandContext,
): Promise<readonly BannerLine[]> {
  const isNew = !(await platform.tokens.list()).some((token) => token.name === tokenName);
  // Before the token, so that an interrupted first run creates the samples again.
  const sampleLines = isNew ? await (config.samples ?? sampleOrders)(platform) : undefined;
  const file = resolve(cwd, tokenFile);
  await reuseToken(platform, file);
  const lines: BannerLine[] = [];
  for (const [name, text] of sampleLines ?? []) {
    lines.push([name, `${paint.bold(text)}  ${paint.dim('(shown only once)')}`]);
  }
  if (isNew) lines.push(['sample data', paint.dim('created; --fresh starts with an empty store')]);
  if (url !== undefined) lines.push(['', ''], ...curlLines(platform, url, paint));
  return lines;
}

/** Keeps the token while its file exists, so that copied requests still work after a restart. */
async function reuseToken({ tokens }: Platform, file: string): Promise<void> {
  const stored = existsSync(file) ? (await readFile(file, 'utf8')).trim() : '';
  if (tokens.verify(stored) !== undefined) return;
  const old = (await tokens.list()).find(
    (token) => token.name === tokenName && token.revokedAt === undefined,
  );
  const by = 'millrace dev';
  if (old !== undefined) await tokens.revoke(old.id, { by });
  const { secret } = await tokens.create({ name: tokenName, scopes: ['admin'], by });
  await writeSecret(file, secret);
}

function curlLines({ modules }: Platform, url: string, paint: Paint): readonly BannerLine[] {
  const curl = `curl -s -H "Authorization: Bearer $(cat ${tokenFile})" -H 'X-Tenant-Id: core'`;
  const [model] = modules.projections.map(({ readModel }) => readModel);
  const body = `{"events":[{"type":"order.placed.v1","payload":{"amount":12.5}}]}`;
  const second: BannerLine =
    model === undefined
      ? [
          'append one',
          `${curl} -H 'Content-Type: application/json' ${url}/api/v1/streams/shop.order.v1-core-9/events -d '${body}'`,
        ]
      : ['documents', `${curl} ${url}/api/v1/documents/${model.bc}/${model.aggregate}`];
  const calls: readonly BannerLine[] = [
    ['read events', `${curl} '${url}/api/v1/events?limit=5'`],
    second,
    ['follow', `${curl} -N '${url}/api/v1/events/subscribe?after=end'`],
  ];
  return calls.map(([name, line]) => [name, paint.dim(line)]);
}

/** Sample events for a folder without modules. */
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
