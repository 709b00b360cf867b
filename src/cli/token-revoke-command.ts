// `millrace token revoke`: a token ends, also for those who are connected with it.

import { exitCodes, readArgs, usage, type Command } from './command.ts';
import { onRecord } from './on-record.ts';
import { jsonOption, openExistingStore, storeOption, storeSections } from './store-option.ts';
import { whoAmI } from './who-am-i.ts';

const options = { ...storeOption, ...jsonOption } as const;

export const tokenRevokeCommand: Command = {
  name: 'token revoke',
  summary: 'ends a token, also for those who are connected with it',
  usage: 'token revoke <name or id>',
  options,
  examples: ['millrace token revoke shop'],
  sections: storeSections,
  async run(context) {
    const { stdout, paint } = context;
    const { values, positionals } = readArgs({ name: 'token revoke', args: context.args }, options);
    const [nameOrId, ...rest] = positionals;
    if (nameOrId === undefined || rest.length > 0)
      throw usage('token revoke takes a name or an id');
    const { openTokens } = await import('../platform/tokens/open-tokens.ts');
    await using store = await openExistingStore(context, values.store);
    await using tokens = await openTokens(store);
    const deed = { action: 'token.revoke', target: nameOrId };
    const token = await onRecord(store, deed, () => tokens.revoke(nameOrId, whoAmI(context)));
    stdout.write(
      values.json === true
        ? `${JSON.stringify(token)}\n`
        : `${paint.green('revoked')} ${token.name} (${token.id})\n`,
    );
    return exitCodes.ok;
  },
};
