// The KurrentDB protocol of the product: its server, and the connection string for official clients.

import { join } from 'node:path';
import type { MillraceConfig } from '../platform/config/millrace-config.ts';
import type { Platform } from '../platform/create-platform.ts';
import { createAppendRules } from '../platform/modules/append-rules.ts';
import { createSecretHider, payloadMasker } from '../platform/modules/hide-secrets.ts';
import { authenticateByTokens, startKurrentServer } from '../server/kurrent/index.ts';
import { localCertificate } from '../server/kurrent/local-certificate.ts';
import type { KeptToken } from './admin-token.ts';
import type { CommandContext } from './command.ts';
import type { Settings } from './product-settings.ts';
import { counted } from './terminal/text.ts';

export interface KurrentSettings extends Pick<
  Settings,
  'host' | 'kurrentAuth' | 'kurrentPort' | 'tls'
> {
  readonly shutdown: { readonly requestsMs: number };
  readonly config: Pick<MillraceConfig, 'server'>;
}

/** Official clients send credentials over TLS only, so a local certificate is created if none is given. */
export async function startKurrentProtocol(
  { engines, modules, tokens }: Platform,
  settings: KurrentSettings,
  folder: string,
): Promise<AsyncDisposable & { readonly url: string }> {
  const { host, kurrentPort: port, kurrentAuth, tls, shutdown } = settings;
  const isOpen = kurrentAuth === 'none';
  const hosts = new Set(['localhost', '127.0.0.1', '::1', host]);
  const needsLocal = !isOpen && tls === undefined;
  const local = needsLocal ? await localCertificate(join(folder, 'tls'), [...hosts]) : undefined;
  const server = await startKurrentServer(engines.store, {
    leases: engines.subscriptions.leases,
    host,
    port,
    tenants: tokens.tenants,
    limits: { stopMsMax: shutdown.requestsMs },
    accept: createAppendRules(modules),
    hider:
      settings.config.server?.maskPayloads === true ? payloadMasker : createSecretHider(modules),
    authenticate: isOpen ? undefined : authenticateByTokens(tokens),
    tls: tls ?? local,
  });
  const authority = local && `&tlsCAFile=${encodeURIComponent(local.authorityFile)}`;
  return {
    url: `${server.url}${authority ?? ''}`,
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

/** The connection string in quotes, for a shell or a program; its secret is shown on a terminal only. */
export function kurrentLines(
  { paint, isTTY }: Pick<CommandContext, 'isTTY' | 'paint'>,
  {
    url,
    kurrentAuth,
    token,
    tokens,
  }: Pick<KurrentSettings, 'kurrentAuth'> & {
    readonly url: string;
    readonly token: KeptToken | undefined;
    /** The number of active tokens. */
    readonly tokens: number;
  },
): readonly (readonly [string, string])[] {
  if (kurrentAuth === 'none') {
    const warning = 'no authentication: every program on this machine has full access';
    return [
      ['KurrentDB', paint.cyan(url)],
      ['', paint.yellow(warning)],
    ];
  }
  const secret = token === undefined || isTTY ? token?.secret : `$(cat '${token.file}')`;
  const credentials = `${token?.name ?? '<token>'}:${secret ?? '<secret>'}@`;
  const note =
    tokens === 0
      ? 'no active tokens: create one with npm run millrace -- token create <name> --scope admin'
      : `official clients; ${counted(tokens, 'active token')}`;
  return [
    ['KurrentDB', paint.cyan(`"${url.replace('://', `://${credentials}`)}"`)],
    ['', paint.dim(note)],
  ];
}
