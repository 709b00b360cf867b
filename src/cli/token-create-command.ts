// `millrace token create`: makes a token and shows its secret, once.

import { tokenScopes, type TokenScope } from '../platform/tokens/token.ts';
import { exitCodes, readArgs, usage, type Command } from './command.ts';
import { onRecord } from './on-record.ts';
import { timeAhead } from './option-values.ts';
import { jsonOption, openStore, storeOption, storeSections } from './store-option.ts';
import { whoAmI } from './who-am-i.ts';

const options = {
  ...storeOption,
  scope: {
    type: 'string',
    multiple: true,
    value: 'scope',
    summary: 'use, read, append or admin; may be given several times (read)',
  },
  tenant: { type: 'string', value: 'name', summary: "only this tenant's streams (all tenants)" },
  expires: { type: 'string', value: 'when', summary: 'after 12h, 30d, …, or on a date (never)' },
  ...jsonOption,
} as const;

export const tokenCreateCommand: Command = {
  name: 'token create',
  summary: 'makes a token, and shows its secret once',
  usage: 'token create <name> [options]',
  options,
  examples: [
    'millrace token create ops --scope admin',
    'millrace token create shop --tenant core --scope read --scope append --expires 90d',
  ],
  sections: storeSections,
  async run(context) {
    const { stdout, paint } = context;
    const { values, positionals } = readArgs({ name: 'token create', args: context.args }, options);
    const [name, ...rest] = positionals;
    if (name === undefined || rest.length > 0) throw usage('token create takes one name');
    const scopes = (values.scope ?? ['read']).map(scopeOf);
    const expiresAt =
      values.expires === undefined ? undefined : timeAhead('expires', values.expires, Date.now());
    const { openTokens } = await import('../platform/tokens/open-tokens.ts');
    await using store = await openStore(context, values.store);
    await using tokens = await openTokens(store);
    const deed = { action: 'token.create', target: name };
    const { token, secret } = await onRecord(store, deed, () =>
      tokens.create({
        name,
        scopes,
        ...(values.tenant === undefined ? {} : { tenant: values.tenant }),
        ...(expiresAt === undefined ? {} : { expiresAt }),
        ...whoAmI(context),
      }),
    );
    const text = [
      `${paint.green('created')} ${token.name}: ${token.scopes.join(', ')}, ${token.tenant ?? 'all tenants'}`,
      '',
      `  secret  ${paint.cyan(secret)}`,
      '',
      'It is not kept, so it cannot be shown again. KurrentDB clients use the name and the secret as user and',
      `password (${paint.dim(`kurrentdb://${token.name}:<secret>@host:2113`)}), HTTP clients the secret as a bearer token.`,
      '',
    ].join('\n');
    stdout.write(values.json === true ? `${JSON.stringify({ token, secret })}\n` : text);
    return exitCodes.ok;
  },
};

function scopeOf(text: string): TokenScope {
  const found = tokenScopes.find((scope) => scope === text);
  if (found !== undefined) return found;
  throw usage(`--scope takes ${tokenScopes.join(', ')}, not '${text}'`);
}
