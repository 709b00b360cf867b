// `millrace token …`: creates, lists and revokes API tokens.

import { tokenScopes, tokenState } from '../../platform/tokens/token.ts';
import { audited, operatorName } from '../audit.ts';
import {
  defineCommand,
  exitCodes,
  noArguments,
  oneArgument,
  printResult,
  type Command,
} from '../command.ts';
import { defined, futureTime, jsonOption, oneOf } from '../options.ts';
import { openExistingStore, openStore, storeOption, storeSections } from '../stores.ts';
import { textTable } from '../terminal/text.ts';

const create = defineCommand({
  name: 'token create',
  summary: 'creates a token and shows its secret once',
  usage: 'token create <name> [options]',
  options: {
    ...storeOption,
    scope: {
      type: 'string',
      multiple: true,
      value: 'scope',
      summary: `${tokenScopes.join(', ')} (repeatable; default: read)`,
    },
    tenant: {
      type: 'string',
      value: 'name',
      summary: 'limits the token to this tenant (default: all tenants)',
    },
    expires: {
      type: 'string',
      value: 'when',
      summary: 'after 12h, 30d, …, or on a date (default: never)',
    },
    ...jsonOption,
  },
  examples: [
    'millrace token create ops --scope admin',
    'millrace token create shop --tenant core --scope read --scope append --expires 90d',
  ],
  sections: storeSections,
  async run(context, input) {
    const { paint } = context;
    const { values } = input;
    const name = oneArgument(input, 'name');
    const scopes = (values.scope ?? ['read']).map((text) => oneOf('scope', tokenScopes, text));
    const { tenant, expires } = values;
    const expiresAt =
      expires === undefined ? undefined : futureTime('expires', expires, Date.now());
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
    return printResult(context, values, { json: { token, secret }, text: lines.join('\n') });
  },
});

const list = defineCommand({
  name: 'token list',
  summary: 'lists all tokens: scopes, tenant, expiry, revocation',
  usage: 'token list',
  options: { ...storeOption, ...jsonOption },
  examples: ['millrace token list', 'millrace token list --json'],
  sections: storeSections,
  async run(context, input) {
    const { stdout, paint } = context;
    const { values } = input;
    noArguments(input);
    const { openTokens } = await import('../../platform/tokens/open-tokens.ts');
    await using store = await openExistingStore(context, values.store);
    await using tokens = await openTokens(store);
    const nowMs = Date.now();
    const all = (await tokens.list()).map((token) => ({
      ...token,
      state: tokenState(token, nowMs),
    }));
    if (values.json === true) {
      stdout.write(all.map((token) => `${JSON.stringify(token)}\n`).join(''));
      return exitCodes.ok;
    }
    const titles = ['name', 'state', 'scopes', 'tenant', 'created', 'expires', 'id'];
    const cells = all.map(({ name, state, scopes, tenant, createdAt, expiresAt, id }) => [
      name,
      state,
      scopes.join('+'),
      tenant ?? '(all)',
      createdAt.slice(0, 10),
      expiresAt?.slice(0, 16) ?? 'never',
      id,
    ]);
    stdout.write(all.length === 0 ? 'no tokens\n' : textTable(titles, cells, paint));
    return exitCodes.ok;
  },
});

const revoke = defineCommand({
  name: 'token revoke',
  summary: 'revokes a token and closes its connections',
  usage: 'token revoke <name or id>',
  options: { ...storeOption, ...jsonOption },
  examples: ['millrace token revoke shop'],
  sections: storeSections,
  async run(context, input) {
    const { values } = input;
    const nameOrId = oneArgument(input, 'name or id');
    const { openTokens } = await import('../../platform/tokens/open-tokens.ts');
    await using store = await openExistingStore(context, values.store);
    await using tokens = await openTokens(store);
    const by = operatorName(context);
    const action = { store, action: 'token.revoke', target: nameOrId };
    const token = await audited(context, action, () => tokens.revoke(nameOrId, { by }));
    return printResult(context, values, {
      json: token,
      text: `${context.paint.green('revoked')} ${token.name} (${token.id})`,
    });
  },
});

export const tokenCommands: readonly Command[] = [create, list, revoke];
