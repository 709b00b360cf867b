// The banner of the product: URLs, the admin token, and which engine has which role.

import { relative, resolve } from 'node:path';
import type { MillraceConfig } from '../platform/config/millrace-config.ts';
import type { Platform } from '../platform/create-platform.ts';
import { createFirstToken, liveTokens, readKeptToken } from './admin-token.ts';
import type { CommandContext } from './command.ts';
import { dataFolder, type Product, type ServerUrls } from './product-servers.ts';
import { displayUrl } from './stores.ts';
import { rolesTable } from './terminal/roles-table.ts';

export interface ProductHooks {
  /** Event store to use instead of the configured engines, unless `--store` is given. */
  readonly store?: string | undefined;
  /** Runs when everything is started, instead of creating the first token; returns banner lines. */
  readonly ready?: (running: RunningProduct) => Promise<readonly BannerLine[]>;
  /** Which files of `.millrace` keep the admin token of this command. Default: those of `millrace start`. */
  readonly isOwnToken?: (file: string) => boolean;
  /** Prints one line of JSON instead of the banner. */
  readonly isJson?: boolean;
}

export interface RunningProduct {
  readonly platform: Platform;
  readonly config: MillraceConfig;
  /** The URL of the HTTP API. */
  readonly url: string | undefined;
}

export type BannerLine = readonly [name: string, text: string];

export async function printBanner(
  product: Product,
  urls: Readonly<ServerUrls>,
  { ready, isJson, isOwnToken }: ProductHooks,
): Promise<void> {
  const { context, settings, platform } = product;
  const { cwd, stdout, paint, isTTY } = context;
  const { http, ntfy, kurrent } = urls;
  const { roleReport } = await import('../platform/engines/role-report.ts');
  const roles = roleReport(platform.engines.roles);
  const store = await displayUrl(context, roles[0]?.url ?? '');
  const lines: BannerLine[] = [
    ['event store', paint.cyan(store)],
    ...roles
      .flatMap(({ warning }) => warning ?? [])
      .map((warning): BannerLine => ['warning', paint.yellow(warning)]),
  ];
  if (http !== undefined) {
    lines.push(['HTTP', `${paint.cyan(http)}  ${paint.dim(`(${http}/docs)`)}`]);
  }
  if (ntfy !== undefined) {
    const { defaultAccessOf } = await import('../server/topics/index.ts');
    const { host, config } = settings;
    const access = defaultAccessOf({ host, hosts: config.server?.hosts, settings: config.notify });
    lines.push(
      ['ntfy', `${paint.cyan(`${ntfy}/<topic>`)}  ${paint.dim('(ntfy apps, curl -d hi)')}`],
      ['', paint.dim(`topics without an access rule, without credentials: ${access}`)],
    );
  }
  const folder = resolve(cwd, dataFolder);
  const ownLines = await ready?.({ platform, config: settings.config, url: http });
  const isFirst = ready === undefined && settings.serves.api;
  const failed = isFirst ? await createFirstToken(platform.tokens, folder) : undefined;
  const token = await readKeptToken(platform.tokens, folder, isOwnToken);
  if (kurrent !== undefined) {
    const { kurrentLines } = await import('./kurrent-protocol.ts');
    const { kurrentAuth } = settings;
    const tokens = await liveTokens(platform.tokens);
    lines.push(
      ...kurrentLines(context, { url: kurrent, kurrentAuth, token, tokens: tokens.length }),
    );
  }
  if (failed !== undefined) {
    lines.push(['no token', `${failed.problem}; create one with millrace token create`]);
  } else if (token !== undefined) {
    const text = isTTY ? `${paint.bold(token.secret)}  ` : '';
    lines.push(['admin token', `${text}${paint.dim(`in ${relative(cwd, token.file)}`)}`]);
  }
  if (http !== undefined) {
    const { consoleLine } = await import('./console-link.ts');
    lines.push(await consoleLine(context, { url: http, token, tokens: platform.tokens }));
  }
  lines.push(...(ownLines ?? [['watch events', paint.dim('npm run millrace -- stream tail')]]));
  const ownNtfy = settings.ntfyPort === undefined ? undefined : ntfy;
  stdout.write(
    isJson === true
      ? `${JSON.stringify({ store, http, ntfy: ownNtfy, kurrentdb: kurrent, adminTokenFile: token?.file })}\n`
      : bannerText(lines, await rolesTable(context, roles), context),
  );
}

function bannerText(
  lines: readonly BannerLine[],
  engines: string,
  { paint }: CommandContext,
): string {
  const width = Math.max(...lines.map(([name]) => name.length));
  return [
    `${paint.bold('Millrace')} is running: append an event once, and everything else follows.`,
    '',
    ...lines.map(([name, text]) => `  ${name.padEnd(width)}  ${text}`),
    '',
    engines,
    paint.dim('Press Ctrl-C to stop.'),
    '',
  ].join('\n');
}
