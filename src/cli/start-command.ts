// `millrace start`: runs the product in one process, until it is told to stop.

import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { MillraceError } from '../foundation/error.ts';
import { exitCodes, readArgs, usage, type Command } from './command.ts';
import { wholeNumber } from './option-values.ts';
import { openStore, shownStore, storeOption, storeSections, storeUrl } from './store-option.ts';

const options = {
  ...storeOption,
  host: { type: 'string', value: 'address', summary: 'where to listen (127.0.0.1)' },
  'kurrent-port': {
    type: 'string',
    value: 'N',
    summary: "for clients of KurrentDB's protocol (2113; 0: any free one)",
  },
  'no-kurrent': { type: 'boolean', summary: 'does not serve that protocol' },
  'tls-cert': { type: 'string', value: 'file', summary: 'a certificate, PEM: TLS instead of none' },
  'tls-key': { type: 'string', value: 'file', summary: 'its private key, PEM' },
} as const;

export const startCommand: Command = {
  name: 'start',
  summary: 'runs the product in one process, until Ctrl-C',
  usage: 'start [options]',
  options,
  examples: [
    'millrace start',
    'millrace start --store postgres://localhost/shop --kurrent-port 2114',
    'millrace start --tls-cert server.crt --tls-key server.key',
  ],
  sections: storeSections,
  async run(context) {
    const { stdout, signal, paint, cwd } = context;
    const { values, positionals } = readArgs({ name: 'start', args: context.args }, options);
    if (positionals.length > 0) throw usage(`start takes options only, not '${positionals[0]}'`);
    if (values['no-kurrent'] === true) {
      throw usage('start --no-kurrent: there is nothing else to serve yet');
    }
    const port = wholeNumber('kurrent-port', values['kurrent-port']) ?? 2113;
    const tls = await tlsOf(cwd, values['tls-cert'], values['tls-key']);
    const { kurrentStoreOptions, startKurrentServer } = await import('../server/kurrent/index.ts');
    await using store = await openStore(context, values.store, kurrentStoreOptions);
    await using server = await startKurrentServer(store, {
      port,
      ...(values.host === undefined ? {} : { host: values.host }),
      ...(tls === undefined ? {} : { tls }),
    });
    const shown = await shownStore(context, storeUrl(context, values.store));
    stdout.write(
      [
        `${paint.bold('Millrace')} runs: append an event once, and everything else follows.`,
        '',
        `  events in     ${paint.cyan(shown)}`,
        `  listens at    ${paint.cyan(server.url)}  ${paint.dim('(official KurrentDB and EventStoreDB clients)')}`,
        `  watch events  ${paint.dim('npm run millrace -- stream tail')}`,
        '',
        paint.dim('Ctrl-C stops it.'),
        '',
      ].join('\n'),
    );
    await whenAborted(signal);
    return exitCodes.ok;
  },
};

async function tlsOf(
  cwd: string,
  certFile: string | undefined,
  keyFile: string | undefined,
): Promise<{ readonly cert: string; readonly key: string } | undefined> {
  if (certFile === undefined && keyFile === undefined) return undefined;
  if (certFile === undefined || keyFile === undefined) {
    throw usage('start: --tls-cert and --tls-key go together');
  }
  const [cert, key] = await Promise.all([readPem(cwd, certFile), readPem(cwd, keyFile)]);
  return { cert, key };
}

async function readPem(cwd: string, file: string): Promise<string> {
  try {
    return await readFile(resolve(cwd, file), 'utf8');
  } catch (error) {
    throw new MillraceError('CONFIG_INVALID', `cannot read '${file}'`, { cause: error });
  }
}

function whenAborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((settle) => {
    signal.addEventListener('abort', () => settle(), { once: true });
  });
}
