// `millrace token list`: all tokens and what became of them; never a secret.

import { tokenState, type Token } from '../platform/tokens/token.ts';
import { exitCodes, readArgs, usage, type Command } from './command.ts';
import type { Paint } from './paint.ts';
import { jsonOption, openExistingStore, storeOption, storeSections } from './store-option.ts';

const options = { ...storeOption, ...jsonOption } as const;

export const tokenListCommand: Command = {
  name: 'token list',
  summary: 'shows all tokens: scopes, tenant, expiry, revocation',
  usage: 'token list',
  options,
  examples: ['millrace token list', 'millrace token list --json'],
  sections: storeSections,
  async run(context) {
    const { stdout, paint } = context;
    const { values, positionals } = readArgs({ name: 'token list', args: context.args }, options);
    if (positionals.length > 0) throw usage('token list takes no argument');
    const { openTokens } = await import('../platform/tokens/open-tokens.ts');
    await using store = await openExistingStore(context, values.store);
    await using tokens = await openTokens(store);
    const nowMs = Date.now();
    const all = (await tokens.list()).map((token) => ({
      ...token,
      state: tokenState(token, nowMs),
    }));
    if (values.json === true) {
      stdout.write(all.map((token) => `${JSON.stringify(token)}\n`).join(''));
    } else {
      stdout.write(all.length === 0 ? 'there are no tokens yet\n' : table(all, paint));
    }
    return exitCodes.ok;
  },
};

type Row = Token & { readonly state: ReturnType<typeof tokenState> };

function table(all: readonly Row[], paint: Paint): string {
  const rows = [
    ['name', 'state', 'scopes', 'tenant', 'created', 'expires', 'id'],
    ...all.map(({ name, state, scopes, tenant, createdAt, expiresAt, id }) => [
      name,
      state,
      scopes.join('+'),
      tenant ?? '(all)',
      createdAt.slice(0, 10),
      expiresAt?.slice(0, 16) ?? 'never',
      id,
    ]),
  ];
  const widths =
    rows[0]?.map((_, at) => Math.max(...rows.map((row) => row[at]?.length ?? 0))) ?? [];
  const lines = rows.map((row) =>
    row
      .map((cell, at) => cell.padEnd(widths[at] ?? 0))
      .join('  ')
      .trimEnd(),
  );
  return lines.map((line, at) => `${at === 0 ? paint.bold(line) : line}\n`).join('');
}
