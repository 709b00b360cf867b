// `millrace token …`: creates, lists and revokes API tokens.

import { tokenScopes } from '../../platform/tokens/scopes.ts';
import { tokenState } from '../../platform/tokens/token.ts';
import { audited, operatorName } from '../audit.ts';
import { defineCommand, type Command } from '../command.ts';
import { defined, futureTime, oneOf, option, repeatable } from '../options.ts';
import { openExistingStore, openStore, storeOption } from '../stores.ts';
import { textTable } from '../terminal/text.ts';

const scopeOf = oneOf(tokenScopes);

const create = defineCommand({
  name: 'token create',
  summary: 'creates a token and shows its secret once',
  usage: '<name> [options]',
  options: {
    ...storeOption,
    scope: repeatable('scope', `${tokenScopes.join(', ')} (repeatable; default: read)`),
    tenant: option('name', 'limits the token to this tenant (default: all tenants)'),
    expires: option('when', 'after 12h, 30d, …, or on a date (default: never)'),
  },
  examples: [
    'millrace token create ops --scope admin',
    'millrace token create shop --tenant core --scope read --scope append --expires 90d',
  ],
  argument: 'name',
  async run(context) {
    const { values, argument: name, paint } = context;
    const { tenant, scope = ['read'] } = values;
    const scopes = scope.map((text) => scopeOf('scope', text));
    const expiresAt = futureTime('expires', values.expires)?.toISOString();
    const { openTokens } = await import('../../platform/tokens/open-tokens.ts');
    await using store = await openStore(context, values.store);
    await using tokens = await openTokens(store);
    const by = operatorName(context);
    const action = { store, action: 'token.create', target: name };
    const { token, secret } = await audited(context, action, () =>
      tokens.create({ name, scopes, by, ...defined({ tenant, expiresAt }) }),
    );
    const lines = [
      `${paint.green('created')} ${token.name}: ${token.scopes.join(', ')}, ${token.tenant ?? 'all tenants'}`,
      '',
      `  secret  ${paint.cyan(secret)}`,
      '',
      'The secret is not stored and cannot be shown again. KurrentDB clients use the name and the secret as user and',
      `password (${paint.dim(`kurrentdb://${token.name}:<secret>@host:2113`)}), HTTP clients use the secret as a bearer token.`,
    ];
    return { json: { token, secret }, text: lines.join('\n') };
  },
});

const list = defineCommand({
  name: 'token list',
  summary: 'lists all tokens: scopes, tenant, expiry, revocation',
  options: storeOption,
  examples: ['millrace token list', 'millrace token list --json'],
  async run(context) {
    const { openTokens } = await import('../../platform/tokens/open-tokens.ts');
    await using store = await openExistingStore(context, context.values.store);
    await using tokens = await openTokens(store);
    const nowMs = Date.now();
    const items = (await tokens.list()).map((token) => ({
      ...token,
      state: tokenState(token, nowMs),
    }));
    const titles = ['name', 'state', 'scopes', 'tenant', 'created', 'expires', 'id'];
    const cells = items.map(({ name, state, scopes, tenant, createdAt, expiresAt, id }) => [
      name,
      state,
      scopes.join('+'),
      tenant ?? '(all)',
      createdAt.slice(0, 10),
      expiresAt?.slice(0, 16) ?? 'never',
      id,
    ]);
    const text = items.length === 0 ? 'no tokens' : textTable(titles, cells, context.paint);
    return { items, text };
  },
});

const revoke = defineCommand({
  name: 'token revoke',
  summary: 'revokes a token and closes its connections',
  usage: '<name or id>',
  options: storeOption,
  examples: ['millrace token revoke shop'],
  argument: 'name or id',
  async run(context) {
    const { argument: nameOrId, paint } = context;
    const { openTokens } = await import('../../platform/tokens/open-tokens.ts');
    await using store = await openExistingStore(context, context.values.store);
    await using tokens = await openTokens(store);
    const by = operatorName(context);
    const action = { store, action: 'token.revoke', target: nameOrId };
    const token = await audited(context, action, () => tokens.revoke(nameOrId, { by }));
    return { json: token, text: `${paint.green('revoked')} ${token.name} (${token.id})` };
  },
});

export const tokenCommands: readonly Command[] = [create, list, revoke];
